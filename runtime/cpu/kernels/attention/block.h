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
      addKeys(key, smaller(kBlockKeys, end - key), larger(smaller(kBlockKeys, end - key - kBlockKeys), 0));
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

  /// Keys [first, first + keyCount) as rows of floats; they are copied where the cache has something else.
  struct FloatRows {
    const float *data;
    int64_t stride;
  };

  static FloatRows floatRows(const CacheRows<Cache> &cache, int64_t size, int64_t padded, int64_t keyCount,
                             float *copied) {
    if (cache.isReady() && size == padded)
      return {cache.floatRows(), cache.rowStride()};
    cache.copy(keyCount, copied, padded);
    return {copied, padded};
  }

  CacheRows<Cache> keysAt(int64_t key) const { return {attention.key, attention.keyScales, sequence, head, key}; }
  CacheRows<Cache> valuesAt(int64_t key) const { return {attention.value, attention.valueScales, sequence, head, key}; }

  /// `nextCount` keys come after these.
  void addKeys(int64_t first, int64_t keyCount, int64_t nextCount) {
    FloatRows keys = floatRows(keysAt(first), attention.size(), paddedSize, keyCount, copiedKeys);
    if (count < kFewQueries)
      return addKeysToFew(keys, first, keyCount, nextCount);
    scoreKeys(keys, keyCount);
    for (int64_t r = 0; r < count; ++r)
      weighRow(r, first, keyCount);
    FloatRows values = floatRows(valuesAt(first), attention.valueSize(), paddedValue, keyCount, copiedValues);
    multiply({scores, kBlockKeys, values.data, values.stride, keyCount, sums, paddedValue, true}, count, paddedValue);
  }

  /// With few rows the calculations are short, so that memory must not rest while they last.
  void addKeysToFew(const FloatRows &keys, int64_t first, int64_t keyCount, int64_t nextCount) {
    int64_t groups = (keyCount + kLanes - 1) / kLanes;
    Prefetch<Cache> next(keysAt(first + keyCount), valuesAt(first + keyCount), nextCount, groups * (count + 1) + count);
    for (int64_t j = 0; j < keyCount; j += kLanes)
      for (int64_t r = 0; r < count; ++r) {
        scoreGroup(keys, r, j, smaller(kLanes, keyCount - j));
        next.advance();
      }
    for (int64_t r = 0; r < count; ++r) {
      weighRow(r, first, keyCount);
      next.advance();
    }
    FloatRows values = floatRows(valuesAt(first), attention.valueSize(), paddedValue, keyCount, copiedValues);
    for (int64_t j = 0; j < keyCount; j += kLanes) {
      multiply({scores + j, kBlockKeys, values.data + j * values.stride, values.stride, smaller(kLanes, keyCount - j),
                sums, paddedValue, true},
               count, paddedValue);
      next.advance();
    }
  }

  /// scores[r][j] = scaled query r · key j
  void scoreKeys(const FloatRows &keys, int64_t keyCount) {
    for (int64_t j = 0; j < keyCount; j += kLanes)
      for (int64_t d = 0; d < paddedSize; d += kLanes)
        transposeBlock(keys.data + j * keys.stride + d, keys.stride, keyCount - j, turnedKeys + d * kBlockKeys + j,
                       kBlockKeys);
    multiply({queries, paddedSize, turnedKeys, kBlockKeys, paddedSize, scores, kBlockKeys, false}, count,
             toLanes(keyCount));
  }

  void scoreGroup(const FloatRows &keys, int64_t r, int64_t j, int64_t some) {
    const float *query = queries + r * paddedSize, *from = keys.data + j * keys.stride;
    store(scores + r * kBlockKeys + j, some == kLanes ? dotRows(query, from, keys.stride, kLanes, paddedSize)
                                                      : dotRows(query, from, keys.stride, some, paddedSize));
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
