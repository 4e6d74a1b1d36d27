// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear attention, token after token. A token reads the state twice, the second time out of L2: to multiply it with the key, and to
// update it and multiply it with the queries. Meanwhile the state of the next head is fetched, so that memory is never idle. What is
// computed for a token does not depend on how many there are in the call.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_ATTENTION_RECURRENT_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_ATTENTION_RECURRENT_H

#include "problem.h"

#include "../scratch.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// Vectors of a row of the state that are worked on at once: with those of four query heads they fit into registers.
#ifdef __AVX512F__
constexpr int kPanelVectors = 4;
#else
constexpr int kPanelVectors = 2;
#endif

/// Rows of a state, of whole vectors.
struct StateRows {
  const float *from;
  float *to; // may be `from`
  int64_t fromStride, toStride;
  const float *coming; // a state of the strides of `from` that is read next, or null
};

/// One token of one head.
class Token {
public:
  explicit Token(const Problem &problem)
      : problem(problem), memory((3 + problem.group) * problem.keyRoom + (1 + problem.group) * problem.valueRoom),
        decay(memory.data()), key(decay + problem.keyRoom), decayedKey(key + problem.keyRoom),
        queries(decayedKey + problem.keyRoom), value(queries + problem.group * problem.keyRoom),
        outs(value + problem.valueRoom) {}

  void run(int64_t sequence, int64_t token, int64_t head, const StateRows &state) {
    read(sequence, token, head);
    int64_t column = 0;
    for (; column + kPanelVectors * kLanes <= problem.valueRoom; column += kPanelVectors * kLanes)
      stepPanel<kPanelVectors>(state, column);
    for (; column < problem.valueRoom; column += kLanes)
      stepPanel<1>(state, column);
    const hone_tensor &out = problem.o.out;
    for (int64_t g = 0; g < problem.group; ++g)
      copyOut(rowAt(out, sequence, token, head * problem.group + g), out.strides[3], outs + g * problem.valueRoom,
              problem.valueSize);
  }

private:
  void read(int64_t sequence, int64_t token, int64_t head) {
    readDecays(decay, problem, sequence, token, head);
    readRow(key, problem.o.key, sequence, token, head, problem.keyRoom);
    for (int64_t g = 0; g < problem.group; ++g)
      readRow(queries + g * problem.keyRoom, problem.o.query, sequence, token, head * problem.group + g,
              problem.keyRoom, problem.scale);
    readRow(value, problem.o.value, sequence, token, head, problem.valueRoom);
    if (!problem.isDelta)
      return;
    beta = readBeta(problem, sequence, token, head);
    for (int64_t d = 0; d < problem.keyRoom; ++d)
      decayedKey[d] = decay[d] * key[d];
  }

  template <int N> void stepPanel(const StateRows &state, int64_t column) {
    Vector update[N];
    for (int n = 0; n < N; ++n)
      update[n] = load(value + column + n * kLanes);
    if (problem.isDelta)
      findUpdate<N>(state, column, update);
    int64_t g = problem.group >= 4 ? 4 : problem.group >= 2 ? 2 : 1;
    if (g == 4)
      apply<N, 4>(state, column, update);
    else if (g == 2)
      apply<N, 2>(state, column, update);
    else
      apply<N, 1>(state, column, update);
    for (; g < problem.group; ++g)
      multiplyQuery<N>(state, column, g);
  }

  /// update = beta (value - the decayed state times the key)
  template <int N> void findUpdate(const StateRows &state, int64_t column, Vector (&update)[N]) const {
    Vector known[2][N] = {};
    const float *row = state.from + column, *coming = state.coming ? state.coming + column : nullptr;
    int64_t d = 0;
    for (; d + 2 <= problem.keySize; d += 2)
      for (int half = 0; half < 2; ++half, row += state.fromStride) {
        for (int n = 0; n < N; ++n)
          known[half][n] += load(row + n * kLanes) * decayedKey[d + half];
        if (half == 0 && coming)
          prefetch<N>(coming + d * state.fromStride);
      }
    for (; d < problem.keySize; ++d, row += state.fromStride)
      for (int n = 0; n < N; ++n)
        known[0][n] += load(row + n * kLanes) * decayedKey[d];
    for (int n = 0; n < N; ++n)
      update[n] = (update[n] - (known[0][n] + known[1][n])) * beta;
  }

  /// The state with the update, and its products with the first G queries.
  template <int N, int G> void apply(const StateRows &state, int64_t column, const Vector (&update)[N]) const {
    Vector sums[G][N] = {};
    const float *from = state.from + column, *coming = state.coming ? state.coming + column : nullptr;
    float *to = state.to + column;
    for (int64_t d = 0; d < problem.keySize; ++d, from += state.fromStride, to += state.toStride) {
      for (int n = 0; n < N; ++n) {
        Vector next = load(from + n * kLanes) * decay[d] + update[n] * key[d];
        store(to + n * kLanes, next);
        for (int g = 0; g < G; ++g)
          sums[g][n] += next * queries[g * problem.keyRoom + d];
      }
      if (coming && (d % 2 == 1 || !problem.isDelta))
        prefetch<N>(coming + d * state.fromStride);
    }
    for (int g = 0; g < G; ++g)
      for (int n = 0; n < N; ++n)
        store(outs + g * problem.valueRoom + column + n * kLanes, sums[g][n]);
  }

  template <int N> void multiplyQuery(const StateRows &state, int64_t column, int64_t g) const {
    Vector sums[N] = {};
    const float *row = state.to + column;
    for (int64_t d = 0; d < problem.keySize; ++d, row += state.toStride)
      for (int n = 0; n < N; ++n)
        sums[n] += load(row + n * kLanes) * queries[g * problem.keyRoom + d];
    for (int n = 0; n < N; ++n)
      store(outs + g * problem.valueRoom + column + n * kLanes, sums[n]);
  }

  template <int N> static void prefetch(const float *row) {
    for (int n = 0; n < N; ++n)
      __builtin_prefetch(row + n * kLanes, 0, 2);
  }

  const Problem &problem;
  Scratch<float> memory;
  float *decay, *key, *decayedKey, *queries, *value, *outs;
  float beta = 1;
};

/// The tokens of one head from `first` on, from `state` to `next`; `coming` is the state of the head that follows.
inline void runRecurrent(const Problem &problem, int64_t sequence, int64_t head, int64_t first, const HeadState &state,
                         const HeadState &next, const HeadState &coming) {
  bool isDense = problem.tokens > first && state.isDense() && next.isDense();
  Scratch<float> memory(isDense ? 0 : problem.keySize * problem.valueRoom);
  StateRows rows = {state.data, next.data, state.rowStride(), next.rowStride(), nullptr};
  if (!isDense) {
    for (int64_t d = 0; d < problem.keySize; ++d)
      state.readRow(memory.data() + d * problem.valueRoom, d, 0, problem.valueSize, problem.valueRoom);
    rows = {memory.data(), memory.data(), problem.valueRoom, problem.valueRoom, nullptr};
  }
  Token token(problem);
  for (int64_t t = first; t < problem.tokens; ++t) {
    rows.coming = isDense && t == problem.tokens - 1 ? coming.data : nullptr;
    token.run(sequence, t, head, rows);
    rows.from = rows.to;
    rows.fromStride = rows.toStride;
  }
  if (!isDense)
    for (int64_t d = 0; d < problem.keySize; ++d)
      next.writeRow(memory.data() + d * problem.valueRoom, d, 0, problem.valueSize);
}

} // namespace
} // namespace hone::cpu::HONE_ISA_NAMESPACE

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_ATTENTION_RECURRENT_H
