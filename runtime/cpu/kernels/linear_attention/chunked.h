// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear attention in chunks of sixteen tokens: the recurrence of a chunk as products of matrices (WY form, Bischof and Van Loan 1987;
// for the delta rule Yang et al. 2024). For tokens i and j <= i of a chunk, D(i, j) the product of the decays after j up to i, and S the
// state before it,
//
//   A(i, j) = k_i · D(i, j) k_j        u_i = beta_i (v_i - (D(i, -1) k_i) S - sum over j < i of A(i, j) u_j)
//   P(i, j) = q_i · D(i, j) k_j        o_i = (D(i, -1) q_i) S + sum over j <= i of P(i, j) u_j
//   S' = D(15, -1) S + sum over j of (D(15, j) k_j) u_jᵀ
//
// D(i, j) is multiplied up, never divided: nothing overflows that does not in the recurrence. Tokens are the lanes of vectors, which is
// why a chunk has sixteen: the products of tokens with each other, which grow with the chunk, are a ninth of all for heads of 128.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_ATTENTION_CHUNKED_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_ATTENTION_CHUNKED_H

#include "problem.h"

#include "../scratch.h"
#include "../transpose.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

constexpr int kChunk = kLanes;

/// Vectors of a row of the register block of products. A panel of the state is as wide.
#ifdef __AVX512F__
constexpr int kBlockVectors = 2;
#else
constexpr int kBlockVectors = 1;
#endif
constexpr int64_t kPanel = kBlockVectors * kLanes;

/// Calls `body.template operator()<M>(first)` for blocks of rows that are sixteen together, as many as registers hold.
template <typename Body> void forRowBlocks(Body body) {
#ifdef __AVX512F__
  body.template operator()<8>(0);
  body.template operator()<8>(8);
#else
  body.template operator()<6>(0);
  body.template operator()<5>(6);
  body.template operator()<5>(11);
#endif
}

/// c[m, n] += sum over i of a[m * aRow + i * aStep] * b[i * N * kLanes + n]
template <int M, int N>
void multiplyBlock(Vector (&c)[M][N], const float *a, int64_t aRow, int64_t aStep, const float *b, int64_t count) {
  for (int64_t i = 0; i < count; ++i, a += aStep, b += N * kLanes) {
    Vector row[N];
    for (int n = 0; n < N; ++n)
      row[n] = load(b + n * kLanes);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n)
        c[m][n] += row[n] * a[m * aRow];
  }
}

/// to[16, N vectors] = aᵀ b for a[count, 16] and b[count, N vectors].
template <int N> void multiplyTokens(float *to, const float *a, const float *b, int64_t count) {
  forRowBlocks([&]<int M>(int64_t first) {
    Vector c[M][N] = {};
    multiplyBlock(c, a + first, 1, kChunk, b, count);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n)
        store(to + ((first + m) * N + n) * kLanes, c[m][n]);
  });
}

/// Fetches a row of a tensor, to be read or written.
template <int WRITES> void prefetchRow(const hone_tensor &tensor, const float *row) {
  int64_t step = tensor.strides[3];
  for (int64_t i = 0; i < tensor.sizes[3]; i += kLanes)
    __builtin_prefetch(row + i * step, WRITES, 3);
}

/// The first `tokens` of one head. Arrays of tokens have an element of the keys in a row, and in it the tokens of the chunk.
class ChunkedHead {
public:
  ChunkedHead(const Problem &problem, int64_t sequence, int64_t head, int64_t tokens)
      : p(problem), sequence(sequence), head(head), tokens(tokens), keyRoom(problem.keyRoom),
        valueRoom(roundUp(problem.valueSize, kPanel)), memory(countFloats()), state(memory.data()),
        rows(state + keyRoom * valueRoom), decays(rows + (1 + p.group) * kChunk * keyRoom),
        keys(decays + kChunk * keyRoom), lastKeys(keys + kChunk * keyRoom), queries(lastKeys + kChunk * keyRoom),
        whole(queries + p.group * kChunk * keyRoom), values(whole + keyRoom), outs(values + kChunk * valueRoom),
        known(outs + p.group * kChunk * valueRoom), updates(known + (1 + p.group) * kChunk * kPanel),
        keyProducts(updates + kChunk * kPanel), queryProducts(keyProducts + kChunk * kChunk) {}

  /// From the state `from` to `to`; `next` is the state of the head that follows.
  void run(const HeadState &from, const HeadState &to, const HeadState &next);

private:
  int64_t countFloats() const {
    return keyRoom * valueRoom + kChunk * keyRoom * (4 + 2 * p.group) + keyRoom + kChunk * valueRoom * (1 + p.group) +
           kChunk * kPanel * (2 + p.group) + kChunk * kChunk * (1 + p.group);
  }

  void read(int64_t first);
  void write(int64_t first) const;
  void prefetchNext(int64_t first, int64_t begin, int64_t end, int64_t steps) const;
  void transposeRows(float *to, const float *from) const;
  void relateTokens();
  void relateTokensByElement();
  void accumulateByElement(int64_t token, const Vector &own);
  template <bool IsDelta> void stepPanel(int64_t panel, int64_t first);
  template <bool IsDelta> void findUpdates(int64_t column, int64_t vector);
  void updateState(int64_t number, int64_t first) const;

  float *queryRows(int64_t g) const { return rows + (1 + g) * kChunk * keyRoom; }
  float *queriesOf(int64_t g) const { return queries + g * kChunk * keyRoom; }

  const Problem &p;
  int64_t sequence, head, tokens, keyRoom, valueRoom;
  Scratch<float> memory;
  float *state;                       // panels [keyRoom, kPanel]
  float *rows;                        // keys, then queries of each query head [16, keyRoom]
  float *decays;                      // [16, keyRoom], where each element of keys has one
  float *keys, *lastKeys, *queries;   // D(i, -1) k_i, D(15, j) k_j and D(i, -1) q_i of each query head
  float *whole;                       // D(15, -1)
  float *values, *outs;               // [16, valueRoom], of each query head
  float *known, *updates;             // products of keys and of queries with a panel [16, kPanel]; u of the panel
  float *keyProducts, *queryProducts; // A, and P of each query head [16, 16]
  float decay[kChunk], beta[kChunk];  // of the tokens
  HeadState coming;                   // which is read after this one
};

} // namespace

/// Keys, queries and values of the tokens from `first` on. Tokens after the last have zeros and change nothing.
void ChunkedHead::read(int64_t first) {
  for (int64_t i = 0; i < kChunk; ++i) {
    int64_t token = first + i;
    bool isThere = token < tokens;
    int64_t at = isThere ? token : first;
    auto readOr0 = [&](float *to, const hone_tensor &tensor, int64_t h, int64_t room, float factor) {
      copyIn(to, rowAt(tensor, sequence, at, h), tensor.strides[3], isThere ? tensor.sizes[3] : 0, room, factor);
    };
    readOr0(rows + i * keyRoom, p.o.key, head, keyRoom, 1);
    for (int64_t g = 0; g < p.group; ++g)
      readOr0(queryRows(g) + i * keyRoom, p.o.query, head * p.group + g, keyRoom, p.scale);
    readOr0(values + i * valueRoom, p.o.value, head, valueRoom, 1);
    beta[i] = p.isDelta && isThere ? readBeta(p, sequence, token, head) : 0.0f;
    if (!p.isGatedByElement)
      decay[i] = isThere ? readDecay(p, sequence, token, head) : 1.0f;
    else if (isThere)
      readDecays(decays + i * keyRoom, p, sequence, token, head);
    else
      for (int64_t d = 0; d < keyRoom; ++d)
        decays[i * keyRoom + d] = 1;
  }
}

void ChunkedHead::write(int64_t first) const {
  const hone_tensor &out = p.o.out;
  for (int64_t g = 0; g < p.group; ++g)
    for (int64_t i = 0; i < smaller(kChunk, tokens - first); ++i)
      copyOut(rowAt(out, sequence, first + i, head * p.group + g), out.strides[3], outs + (g * kChunk + i) * valueRoom,
              p.valueSize);
}

/// [16, keyRoom] as [keyRoom, 16].
void ChunkedHead::transposeRows(float *to, const float *from) const {
  for (int64_t d = 0; d < keyRoom; d += kLanes) {
    Vector block[kLanes];
    for (int64_t i = 0; i < kChunk; ++i)
      block[i] = load(from + i * keyRoom + d);
    transpose(block);
    for (int64_t i = 0; i < kLanes; ++i)
      store(to + (d + i) * kChunk, block[i]);
  }
}

/// A, P, and keys and queries times decays, where a token has one decay.
void ChunkedHead::relateTokens() {
  transposeRows(lastKeys, rows);
  multiplyTokens<1>(keyProducts, lastKeys, lastKeys, p.keySize);
  for (int64_t g = 0; g < p.group; ++g) {
    transposeRows(queriesOf(g), queryRows(g));
    multiplyTokens<1>(queryProducts + g * kChunk * kChunk, queriesOf(g), lastKeys, p.keySize);
  }
  Vector since = 0, from = 1; // D(i, j) in lane j, 0 for j > i; D(i, -1) in lane i
  float product = 1;
  for (int64_t i = 0; i < kChunk; ++i) {
    product *= decay[i];
    since *= decay[i];
    since[i] = 1;
    from[i] = product;
    store(keyProducts + i * kChunk, load(keyProducts + i * kChunk) * since);
    for (int64_t g = 0; g < p.group; ++g) {
      float *row = queryProducts + (g * kChunk + i) * kChunk;
      store(row, load(row) * since);
    }
  }
  for (int64_t d = 0; d < keyRoom; ++d) {
    Vector key = load(lastKeys + d * kChunk);
    store(keys + d * kChunk, key * from);
    store(lastKeys + d * kChunk, key * since);
    for (int64_t g = 0; g < p.group; ++g)
      store(queriesOf(g) + d * kChunk, load(queriesOf(g) + d * kChunk) * from);
    whole[d] = product;
  }
}

/// Rows i of A and P. `lastKeys` has D(i - 1, j) k_j, and then D(i, j) k_j; `own` is 1 in the lane of the token and 0 in others.
void ChunkedHead::accumulateByElement(int64_t token, const Vector &own) {
  const float *key = rows + token * keyRoom, *factor = decays + token * keyRoom;
  Vector sums[4] = {};
  for (int64_t d = 0; d < keyRoom; d += 4)
    for (int64_t i = d; i < d + 4; ++i) {
      Vector row = load(lastKeys + i * kChunk) * factor[i] + own * key[i];
      store(lastKeys + i * kChunk, row);
      sums[i - d] += row * key[i];
    }
  store(keyProducts + token * kChunk, (sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (int64_t g = 0; g < p.group; ++g) {
    const float *query = queryRows(g) + token * keyRoom;
    Vector products[4] = {};
    for (int64_t d = 0; d < keyRoom; d += 4)
      for (int64_t i = d; i < d + 4; ++i)
        products[i - d] += load(lastKeys + i * kChunk) * query[i];
    store(queryProducts + (g * kChunk + token) * kChunk, (products[0] + products[1]) + (products[2] + products[3]));
  }
}

/// The same where each element of the keys has a decay of its own.
void ChunkedHead::relateTokensByElement() {
  for (int64_t i = 0; i < keyRoom * kChunk; i += kLanes)
    store(lastKeys + i, (Vector)0.0f);
  for (int64_t i = 0; i < kChunk; ++i) {
    Vector own = 0;
    own[i] = 1;
    accumulateByElement(i, own);
  }
  for (int64_t d = 0; d < keyRoom; d += kLanes) {
    Vector product = 1;
    for (int64_t i = 0; i < kChunk; ++i) {
      product *= load(decays + i * keyRoom + d);
      for (int64_t r = 0; r <= p.group; ++r) {
        float *row = rows + (r * kChunk + i) * keyRoom + d;
        store(row, load(row) * product);
      }
    }
    store(whole + d, product);
  }
  transposeRows(keys, rows);
  for (int64_t g = 0; g < p.group; ++g)
    transposeRows(queriesOf(g), queryRows(g));
}

/// u and the outputs of sixteen columns, `vector` of the panel that begins at `column`.
template <bool IsDelta> void ChunkedHead::findUpdates(int64_t column, int64_t vector) {
  Vector u[kChunk]; // the right-hand sides of those that are not known yet
  int64_t at = column + vector * kLanes;
#pragma clang loop unroll(full)
  for (int i = 0; i < kChunk; ++i) {
    u[i] = load(values + i * valueRoom + at);
    if constexpr (IsDelta)
      u[i] -= load(known + i * kPanel + vector * kLanes);
  }
#pragma clang loop unroll(full)
  for (int j = 0; j < kChunk; ++j) {
    if constexpr (IsDelta) {
      u[j] *= beta[j];
#pragma clang loop unroll(full)
      for (int i = j + 1; i < kChunk; ++i)
        u[i] -= u[j] * keyProducts[i * kChunk + j];
    }
    store(updates + j * kPanel + vector * kLanes, u[j]);
  }
  for (int64_t g = 0; g < p.group; ++g) {
    const float *product = queryProducts + g * kChunk * kChunk, *read = known + (1 + g) * kChunk * kPanel;
    float *to = outs + g * kChunk * valueRoom + at;
#pragma clang loop unroll(full)
    for (int i = 0; i < kChunk; ++i) {
      Vector sum = load(read + i * kPanel + vector * kLanes);
#pragma clang loop unroll(full)
      for (int j = 0; j <= i; ++j)
        sum += u[j] * product[i * kChunk + j];
      store(to + i * valueRoom, sum);
    }
  }
}

/// The panel of that number after the chunk from token `first` on.
void ChunkedHead::updateState(int64_t number, int64_t first) const {
  float *panel = state + number * keyRoom * kPanel;
  int64_t steps = valueRoom / kPanel * keyRoom;
  for (int64_t d = 0; d < keyRoom; d += kLanes)
    forRowBlocks([&]<int M>(int64_t row) {
      int64_t begin = d + row, step = number * keyRoom + begin;
      prefetchNext(first + kChunk, step, step + M, steps);
      Vector c[M][kBlockVectors];
      for (int m = 0; m < M; ++m)
        for (int n = 0; n < kBlockVectors; ++n)
          c[m][n] = load(panel + (begin + m) * kPanel + n * kLanes) * whole[begin + m];
      multiplyBlock(c, lastKeys + begin * kChunk, kChunk, 1, updates, kChunk);
      for (int m = 0; m < M; ++m)
        for (int n = 0; n < kBlockVectors; ++n)
          store(panel + (begin + m) * kPanel + n * kLanes, c[m][n]);
    });
}

/// Fetches, in the steps from `begin` to `end` of `steps`, what the chunk from token `first` on reads and writes, and after the last chunk
/// the state of the next head. Rows of a head lie far apart, and no prefetcher of the processor follows them.
void ChunkedHead::prefetchNext(int64_t first, int64_t begin, int64_t end, int64_t steps) const {
  if (first >= tokens) {
    for (int64_t d = p.keySize * begin / steps; coming.data && d < p.keySize * end / steps; ++d)
      prefetchRow<0>(*coming.tensor, coming.data + d * coming.rowStride());
    return;
  }
  int64_t rowsOfToken = 3 + 2 * p.group, count = smaller(kChunk, tokens - first) * rowsOfToken;
  for (int64_t i = count * begin / steps; i < count * end / steps; ++i) {
    int64_t token = first + i / rowsOfToken, number = i % rowsOfToken, query = head * p.group + (number - 3) / 2;
    if (number == 0)
      prefetchRow<0>(p.o.key, rowAt(p.o.key, sequence, token, head));
    else if (number == 1)
      prefetchRow<0>(p.o.value, rowAt(p.o.value, sequence, token, head));
    else if (number == 2 && p.isGatedByElement)
      prefetchRow<0>(p.o.decay, rowAt(p.o.decay, sequence, token, head));
    else if (number >= 3 && number % 2 != 0)
      prefetchRow<0>(p.o.query, rowAt(p.o.query, sequence, token, query));
    else if (number >= 3)
      prefetchRow<1>(p.o.out, rowAt(p.o.out, sequence, token, query));
  }
}

/// One panel of the state for the chunk from token `first` on.
template <bool IsDelta> void ChunkedHead::stepPanel(int64_t panel, int64_t first) {
  float *rowsOfState = state + panel * keyRoom * kPanel;
  if constexpr (IsDelta)
    multiplyTokens<kBlockVectors>(known, keys, rowsOfState, p.keySize);
  for (int64_t g = 0; g < p.group; ++g)
    multiplyTokens<kBlockVectors>(known + (1 + g) * kChunk * kPanel, queriesOf(g), rowsOfState, p.keySize);
  for (int64_t n = 0; n < kBlockVectors; ++n)
    findUpdates<IsDelta>(panel * kPanel, n);
  updateState(panel, first);
}

void ChunkedHead::run(const HeadState &from, const HeadState &to, const HeadState &next) {
  coming = next;
  int64_t panels = valueRoom / kPanel;
  auto forRows = [&](int64_t count, auto body) {
    for (int64_t d = 0; d < count; ++d)
      for (int64_t panel = 0; panel < panels; ++panel) {
        int64_t column = panel * kPanel;
        body(state + (panel * keyRoom + d) * kPanel, d, column, smaller(kPanel, p.valueSize - column));
      }
  };
  forRows(keyRoom, [&](float *row, int64_t d, int64_t column, int64_t columns) {
    from.readRow(row, d, column, d < p.keySize ? columns : 0, kPanel);
  });
  for (int64_t first = 0; first < tokens; first += kChunk) {
    read(first);
    if (p.isGatedByElement)
      relateTokensByElement();
    else
      relateTokens();
    for (int64_t panel = 0; panel < panels; ++panel)
      if (p.isDelta)
        stepPanel<true>(panel, first);
      else
        stepPanel<false>(panel, first);
    write(first);
  }
  forRows(p.keySize,
          [&](const float *row, int64_t d, int64_t column, int64_t columns) { to.writeRow(row, d, column, columns); });
}

} // namespace hone::cpu::HONE_ISA_NAMESPACE

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_ATTENTION_CHUNKED_H
