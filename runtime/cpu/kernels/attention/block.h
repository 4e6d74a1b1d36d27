// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention of a block of query rows in one pass over keys: softmax with a running maximum and sum (Milakov and Gimelshein,
// 2018), by blocks of queries and keys (Dao et al., 2022). The query heads that share a key head are rows of one block, so
// that keys and values are read once for all of them.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_H

#include "../scratch.h"
#include "cache.h"
#include "products.h"
#include "softmax_row.h"

namespace {

constexpr int64_t kBlockQueries = 128; // most rows of a block
constexpr int64_t kFewQueries = 8;     // below this, turning the keys costs more than it saves

inline int64_t toLanes(int64_t size) { return (size + kLanes - 1) / kLanes * kLanes; }

/// Sums of one row over a part of the keys: weights relative to `largest`.
struct PartialRow {
  float largest, sum;
  float *values;
};

/// The rows [first, first + count) of one sequence and key head, and memory to work in.
template <typename Cache> class Block {
public:
  explicit Block(const Attention &attention)
      : attention(attention), paddedSize(toLanes(attention.size())), paddedValue(toLanes(attention.valueSize())),
        memory(kBlockQueries * (paddedSize + paddedValue + kBlockKeys) + kBlockKeys * (2 * paddedSize + paddedValue)),
        queries(memory.data()), sums(queries + kBlockQueries * paddedSize), scores(sums + kBlockQueries * paddedValue),
        turnedKeys(scores + kBlockQueries * kBlockKeys), copiedKeys(turnedKeys + kBlockKeys * paddedSize),
        copiedValues(copiedKeys + kBlockKeys * paddedSize) {}

  /// Adds up keys [firstKey, endKey) as far as they are visible. Sinks count with key 0.
  void run(int64_t b, int64_t keyHead, int64_t first, int64_t rowCount, int64_t firstKey, int64_t endKey) {
    sequence = b;
    head = keyHead;
    count = rowCount;
    int64_t begin = endKey, end = firstKey;
    for (int64_t r = 0; r < count; ++r) {
      beginRow(r, first + r, firstKey == 0);
      begin = smaller(begin, rows[r].begin);
      end = larger(end, rows[r].end);
    }
    end = smaller(end, endKey);
    for (int64_t key = larger(begin, firstKey); key < end; key += kBlockKeys)
      addKeys(key, smaller(kBlockKeys, end - key));
  }

  void writeRows() const {
    for (int64_t r = 0; r < count; ++r)
      writeRow(r, rows[r].sum, sums + r * paddedValue);
  }

  /// Copies the sums of the rows to where they wait for those of other keys.
  void writePartial(PartialRow *partial) const {
    for (int64_t r = 0; r < count; ++r) {
      partial[r].largest = rows[r].largest;
      partial[r].sum = rows[r].sum;
      for (int64_t d = 0; d < paddedValue; ++d)
        partial[r].values[d] = sums[r * paddedValue + d];
    }
  }

  /// Joins the sums of `parts` parts of the keys; row r of part i is partial[i * partStride + r].
  void join(const PartialRow *partial, int64_t parts, int64_t partStride) {
    for (int64_t r = 0; r < count; ++r) {
      float largest = -__builtin_inff(), sum = 0;
      for (int64_t i = 0; i < parts; ++i)
        largest = partial[i * partStride + r].largest > largest ? partial[i * partStride + r].largest : largest;
      float *total = sums + r * paddedValue;
      for (int64_t d = 0; d < paddedValue; ++d)
        total[d] = 0;
      for (int64_t i = 0; i < parts; ++i) {
        const PartialRow &part = partial[i * partStride + r];
        float factor = part.sum == 0 ? 0 : vectorExp(part.largest - largest);
        sum += factor * part.sum;
        for (int64_t d = 0; d < paddedValue; ++d)
          total[d] += factor * part.values[d];
      }
      rows[r].sum = sum;
    }
  }

private:
  void beginRow(int64_t r, int64_t index, bool withSinks) {
    QueryRow &row = rows[r];
    row.head = head * attention.group() + index / attention.queries();
    row.query = index % attention.queries();
    row.position = attention.keys() - attention.queries() + row.query;
    attention.visible(sequence, row.query, row.begin, row.end);
    row.bias = attention.biasRow(sequence, row.head, row.query);
    row.slope = attention.alibi.data ? attention.alibi[row.head] : 0.0f;
    // A sink is a key without a value that every query sees.
    bool hasSink = withSinks && attention.sinks.data;
    row.largest = hasSink ? attention.sinks[row.head] : -__builtin_inff();
    row.sum = hasSink ? 1.0f : 0.0f;
    const hone_tensor &query = attention.query;
    const float *from = floats(query) + offsetOf(query, sequence, row.head, row.query);
    for (int64_t d = 0; d < paddedSize; ++d)
      queries[r * paddedSize + d] = d < attention.size() ? from[d * query.strides[3]] * attention.scale : 0.0f;
    for (int64_t d = 0; d < paddedValue; ++d)
      sums[r * paddedValue + d] = 0;
  }

  void addKeys(int64_t first, int64_t keyCount) {
    scoreKeys(first, keyCount);
    for (int64_t r = 0; r < count; ++r)
      weighRow(r, first, keyCount);
    CacheRows<Cache> values(attention.value, attention.valueScales, sequence, head, first);
    bool isReady = values.isReady() && attention.valueSize() == paddedValue;
    if (!isReady)
      values.copy(keyCount, copiedValues, paddedValue);
    Product product = {scores,
                       kBlockKeys,
                       isReady ? values.floatRows() : copiedValues,
                       isReady ? values.rowStride() : paddedValue,
                       keyCount,
                       sums,
                       paddedValue,
                       true};
    if (isReady && count < kFewQueries)
      multiply<true>(product, count, paddedValue);
    else
      multiply<false>(product, count, paddedValue);
  }

  /// scores[r][j] = scaled query r · key (first + j)
  void scoreKeys(int64_t first, int64_t keyCount) {
    CacheRows<Cache> keys(attention.key, attention.keyScales, sequence, head, first);
    bool isReady = keys.isReady() && attention.size() == paddedSize;
    const float *from = isReady ? keys.floatRows() : copiedKeys;
    int64_t stride = isReady ? keys.rowStride() : paddedSize;
    if (!isReady)
      keys.copy(keyCount, copiedKeys, paddedSize);
    if (count < kFewQueries)
      return scoreFewRows(from, stride, keyCount);
    for (int64_t j = 0; j < keyCount; j += kLanes)
      for (int64_t d = 0; d < paddedSize; d += kLanes)
        transposeBlock(from + j * stride + d, stride, keyCount - j, turnedKeys + d * kBlockKeys + j, kBlockKeys);
    Product product = {queries, paddedSize, turnedKeys, kBlockKeys, paddedSize, scores, kBlockKeys, false};
    multiply<false>(product, count, toLanes(keyCount));
  }

  void scoreFewRows(const float *from, int64_t stride, int64_t keyCount) {
    for (int64_t j = 0; j < keyCount; j += kLanes) {
      const float *keys = from + j * stride;
      int64_t some = smaller(kLanes, keyCount - j);
      for (int64_t key = 0; key < some; ++key)
        for (int64_t d = 0; d < paddedSize; d += kLanes)
          prefetchCache(keys + key * stride + d);
      for (int64_t r = 0; r < count; ++r)
        store(scores + r * kBlockKeys + j, some == kLanes
                                               ? dotRows(queries + r * paddedSize, keys, stride, kLanes, paddedSize)
                                               : dotRows(queries + r * paddedSize, keys, stride, some, paddedSize));
    }
  }

  void weighRow(int64_t r, int64_t first, int64_t keyCount) {
    float *score = scores + r * kBlockKeys;
    rows[r].adjust(score, first, keyCount, attention.softcap);
    float correction = rows[r].weigh(score, first, keyCount);
    if (correction == 1.0f)
      return;
    for (int64_t d = 0; d < paddedValue; d += kLanes)
      store(sums + r * paddedValue + d, load(sums + r * paddedValue + d) * correction);
  }

  void writeRow(int64_t r, float sum, const float *values) const {
    const hone_tensor &out = attention.out;
    float factor = sum == 0 ? 0.0f : 1.0f / sum; // 0: nothing was visible
    float *to = floats(out) + offsetOf(out, sequence, rows[r].head, rows[r].query);
    for (int64_t d = 0; d < attention.valueSize(); ++d)
      to[d * out.strides[3]] = values[d] * factor;
  }

  const Attention &attention;
  int64_t paddedSize, paddedValue;
  Scratch<float> memory;
  float *queries, *sums, *scores, *turnedKeys, *copiedKeys, *copiedValues;
  QueryRow rows[kBlockQueries];
  int64_t sequence = 0, head = 0, count = 0;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_H
