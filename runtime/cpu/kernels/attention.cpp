// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention in one pass over the keys: softmax with a running maximum and sum (Milakov and Gimelshein, 2018), by blocks
// of queries and keys (Dao et al., 2022). The query heads that share a key head are rows of one block, so that keys and
// values are read once for all of them.

#include "kernels.h"

#include "../sgemm.h"
#include "rows.h"
#include "vector.h"

#include <omp.h>

namespace hone::cpu::HONE_LEVEL_NAMESPACE {
namespace {

constexpr int64_t kBlockKeys = 64;    // keys whose scores are held at a time
constexpr int64_t kBlockQueries = 32; // most rows of a block
constexpr int64_t kFewQueries = 8;    // below this, rearranging the keys costs more than it saves

int64_t roundUp(int64_t size) { return (size + kLanes - 1) / kLanes * kLanes; }

/// An optional list with an element a sequence.
struct PerSequence {
  const int64_t *data = nullptr;
  int64_t stride = 0;

  int64_t at(int64_t sequence, int64_t fallback) const { return data ? data[sequence * stride] : fallback; }
};

PerSequence perSequence(const hone_tensor &tensor) {
  if (isAbsent(tensor))
    return {};
  return {static_cast<const int64_t *>(tensor.data), tensor.strides[0]};
}

float *at(const hone_tensor &tensor, int64_t a, int64_t b, int64_t c) {
  return floats(tensor) + a * tensor.strides[0] + b * tensor.strides[1] + c * tensor.strides[2];
}

/// Operands and attributes, as kernels.h lists them.
struct Attention {
  const hone_tensor &query, &key, &value, &bias;
  Row alibi, sinks;
  PerSequence keyBegin, keyEnd, prefix;
  const hone_tensor &out;
  bool causal;
  int64_t window;
  float scale, softcap;

  Attention(const hone_tensor *o, const int64_t *ints, const double *floats)
      : query(o[0]), key(o[1]), value(o[2]), bias(o[3]), alibi(vectorOf(o[4])), sinks(vectorOf(o[5])),
        keyBegin(perSequence(o[6])), keyEnd(perSequence(o[7])), prefix(perSequence(o[8])), out(o[9]),
        causal(ints[0] != 0), window(ints[1]), scale(static_cast<float>(floats[0])),
        softcap(static_cast<float>(floats[1])) {}

  int64_t batch() const { return query.sizes[0]; }
  int64_t heads() const { return query.sizes[1]; }
  int64_t queries() const { return query.sizes[2]; }
  int64_t size() const { return query.sizes[3]; }
  int64_t keyHeads() const { return key.sizes[1]; }
  int64_t keys() const { return key.sizes[2]; }
  int64_t valueSize() const { return value.sizes[3]; }
  int64_t group() const { return heads() / keyHeads(); }

  /// Keys that query i of sequence b may see: [begin, end).
  void visible(int64_t b, int64_t i, int64_t &begin, int64_t &end) const {
    int64_t position = keys() - queries() + i;
    begin = larger(0, keyBegin.at(b, 0));
    end = smaller(keys(), keyEnd.at(b, keys()));
    if (causal)
      end = smaller(end, larger(position + 1, prefix.at(b, 0)));
    if (window >= 0)
      begin = larger(begin, position - window + 1);
  }

  /// Address and stride of the bias of a row, or null.
  Row biasRow(int64_t b, int64_t head, int64_t i) const {
    if (isAbsent(bias))
      return {nullptr, 0};
    auto one = [this](int32_t axis, int64_t index) { return bias.sizes[axis] == 1 ? 0 : index; };
    return {at(bias, one(0, b), one(1, head), one(2, i)), bias.sizes[3] == 1 ? 0 : bias.strides[3]};
  }
};

/// A row of a block: a query of a head, and its running softmax.
struct QueryRow {
  int64_t head, query, position, begin, end;
  Row bias;
  float slope, largest, sum;
};

/// The rows [first, first + count) of one sequence and key head, and memory to work in.
class Block {
public:
  explicit Block(const Attention &attention)
      : attention(attention), size(attention.size()), valueSize(attention.valueSize()),
        paddedValue(roundUp(attention.valueSize())),
        memory(allocateScratch(kBlockQueries * (size + paddedValue + kBlockKeys) + kBlockKeys * (size + paddedValue))),
        queries(memory), sums(queries + kBlockQueries * size), scores(sums + kBlockQueries * paddedValue),
        keys(scores + kBlockQueries * kBlockKeys), values(keys + kBlockKeys * size) {}
  ~Block() { freeScratch(memory); }
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  void run(int64_t b, int64_t keyHead, int64_t first, int64_t rowCount) {
    sequence = b;
    head = keyHead;
    count = rowCount;
    int64_t begin = attention.keys(), end = 0;
    for (int64_t r = 0; r < count; ++r) {
      beginRow(r, first + r);
      begin = smaller(begin, rows[r].begin);
      end = larger(end, rows[r].end);
    }
    for (int64_t key = begin; key < end; key += kBlockKeys)
      addKeys(key, smaller(kBlockKeys, end - key));
    for (int64_t r = 0; r < count; ++r)
      finishRow(r);
  }

private:
  void beginRow(int64_t r, int64_t index) {
    QueryRow &row = rows[r];
    row.head = head * attention.group() + index / attention.queries();
    row.query = index % attention.queries();
    row.position = attention.keys() - attention.queries() + row.query;
    attention.visible(sequence, row.query, row.begin, row.end);
    row.bias = attention.biasRow(sequence, row.head, row.query);
    row.slope = attention.alibi.data ? attention.alibi[row.head] : 0.0f;
    // A sink is a key without a value that every query sees.
    row.largest = attention.sinks.data ? attention.sinks[row.head] : -__builtin_inff();
    row.sum = attention.sinks.data ? 1.0f : 0.0f;
    const float *from = at(attention.query, sequence, row.head, row.query);
    for (int64_t d = 0; d < size; ++d)
      queries[r * size + d] = from[d * attention.query.strides[3]] * attention.scale;
    for (int64_t d = 0; d < paddedValue; ++d)
      sums[r * paddedValue + d] = 0;
  }

  void addKeys(int64_t first, int64_t keyCount) {
    scoreKeys(first, keyCount);
    const float *from = at(attention.value, sequence, head, first);
    int64_t stride = attention.value.strides[2];
    if (attention.value.strides[3] != 1 || valueSize != paddedValue) {
      packValues(from, keyCount);
      from = values;
      stride = paddedValue;
    }
    for (int64_t r = 0; r < count; ++r)
      if (weighRow(r, first, keyCount))
        addValues(r, from, stride, keyCount);
  }

  /// scores[r][j] = scaled query r · key (first + j)
  void scoreKeys(int64_t first, int64_t keyCount) {
    const float *from = at(attention.key, sequence, head, first);
    int64_t stride = attention.key.strides[2], step = attention.key.strides[3];
    if (count < kFewQueries && step == 1) {
      for (int64_t j = 0; j < keyCount; ++j)
        for (int64_t r = 0; r < count; ++r)
          scores[r * kBlockKeys + j] = dot(queries + r * size, from + j * stride, size);
      return;
    }
    for (int64_t j = 0; j < keyCount; ++j)
      for (int64_t d = 0; d < size; ++d)
        keys[d * kBlockKeys + j] = from[j * stride + d * step];
    for (int64_t d = 0; d < size; ++d)
      for (int64_t j = keyCount; j < kBlockKeys; ++j)
        keys[d * kBlockKeys + j] = 0;
    int64_t r = 0;
    for (; r + 2 <= count; r += 2)
      scoreRows<2>(r);
    if (r < count)
      scoreRows<1>(r);
  }

  template <int ROWS>
  void scoreRows(int64_t first) {
    constexpr int vectors = kBlockKeys / kLanes;
    Vector products[ROWS][vectors] = {};
    for (int64_t d = 0; d < size; ++d)
      for (int r = 0; r < ROWS; ++r)
        for (int v = 0; v < vectors; ++v)
          products[r][v] += queries[(first + r) * size + d] * load(keys + d * kBlockKeys + v * kLanes);
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < vectors; ++v)
        store(scores + (first + r) * kBlockKeys + v * kLanes, products[r][v]);
  }

  void packValues(const float *from, int64_t keyCount) {
    int64_t stride = attention.value.strides[2], step = attention.value.strides[3];
    for (int64_t j = 0; j < keyCount; ++j)
      for (int64_t d = 0; d < paddedValue; ++d)
        values[j * paddedValue + d] = d < valueSize ? from[j * stride + d * step] : 0.0f;
  }

  /// Turns a row's scores into weights under its running maximum; false where the row sees none of these keys.
  bool weighRow(int64_t r, int64_t first, int64_t keyCount) {
    QueryRow &row = rows[r];
    float *score = scores + r * kBlockKeys;
    float largest = row.largest;
    for (int64_t j = 0; j < keyCount; ++j) {
      float logit = score[j];
      if (attention.softcap > 0)
        logit = attention.softcap * tanhf(logit / attention.softcap);
      logit += row.slope * static_cast<float>(first + j - row.position);
      if (row.bias.data)
        logit += row.bias[first + j];
      bool seen = first + j >= row.begin && first + j < row.end;
      score[j] = seen ? logit : -__builtin_inff();
      largest = score[j] > largest ? score[j] : largest;
    }
    if (largest == -__builtin_inff())
      return false;
    float correction = vectorExp(row.largest - largest), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < keyCount; ++j) {
      score[j] = vectorExp(score[j] - largest);
      sum += score[j];
    }
    row.largest = largest;
    row.sum = row.sum * correction + sum;
    for (int64_t d = 0; d < paddedValue; ++d)
      sums[r * paddedValue + d] *= correction;
    return true;
  }

  void addValues(int64_t r, const float *from, int64_t stride, int64_t keyCount) {
    const float *weight = scores + r * kBlockKeys;
    for (int64_t d = 0; d < paddedValue; d += kLanes) {
      Vector total = load(sums + r * paddedValue + d);
      for (int64_t j = 0; j < keyCount; ++j)
        total += weight[j] * load(from + j * stride + d);
      store(sums + r * paddedValue + d, total);
    }
  }

  void finishRow(int64_t r) {
    const QueryRow &row = rows[r];
    float factor = row.sum == 0 ? 0.0f : 1.0f / row.sum; // 0: nothing was visible
    float *to = at(attention.out, sequence, row.head, row.query);
    for (int64_t d = 0; d < valueSize; ++d)
      to[d * attention.out.strides[3]] = sums[r * paddedValue + d] * factor;
  }

  const Attention &attention;
  int64_t size, valueSize, paddedValue;
  float *memory, *queries, *sums, *scores, *keys, *values;
  QueryRow rows[kBlockQueries];
  int64_t sequence = 0, head = 0, count = 0;
};

/// Rows of a block: large for reuse of keys, smaller where threads would be idle.
int64_t chooseBlockRows(int64_t sequenceHeads, int64_t rows) {
  int64_t block = kBlockQueries, threads = omp_get_max_threads();
  while (block > kFewQueries && sequenceHeads * ((rows + block - 1) / block) < threads)
    block /= 2;
  return block;
}

} // namespace

void attentionF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats) {
  Attention attention(operands, ints, floats);
  if (isAbsent(attention.out))
    return;
  int64_t sequenceHeads = attention.batch() * attention.keyHeads(), rows = attention.group() * attention.queries();
  int64_t blockRows = chooseBlockRows(sequenceHeads, rows), blocks = (rows + blockRows - 1) / blockRows;
#pragma omp parallel
  {
    Block block(attention);
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < sequenceHeads * blocks; ++task) {
      int64_t sequenceHead = task / blocks, first = task % blocks * blockRows;
      block.run(sequenceHead / attention.keyHeads(), sequenceHead % attention.keyHeads(), first,
                smaller(blockRows, rows - first));
    }
  }
}

} // namespace hone::cpu::HONE_LEVEL_NAMESPACE
