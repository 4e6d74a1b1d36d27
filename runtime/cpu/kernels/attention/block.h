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
#include "tile_keys.h"

namespace {

constexpr int64_t kBlockQueries = 128; // most rows of a block
constexpr int64_t kFewRows = 32;       // below this, memory must not rest while a block of keys is worked on
constexpr int64_t kStepRows = 4;       // of those, rows that are scored at a time

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
        memory(kBlockQueries * (paddedSize + paddedValue + kBlockKeys) +
               kBlockKeys * (paddedSize + larger(paddedSize, paddedValue))),
        queries(memory.data()), sums(queries + kBlockQueries * paddedSize), scores(sums + kBlockQueries * paddedValue),
        turnedKeys(scores + kBlockQueries * kBlockKeys), copiedRows(turnedKeys + kBlockKeys * paddedSize),
        tiles(attention, kBlockQueries) {}

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
    KeyBlocks blocks(larger(begin, firstKey), end, count < kFewRows);
    if (tiles.takes())
      return tiles.run({sequence, head, rows, count, queries, paddedSize, sums, paddedValue}, blocks);
    Prefetch<Cache> next(attention.key, attention.value, sequence, head, advancesOfBlock());
    for (int64_t i = 0; i < blocks.count(); ++i)
      if (blocks.keyCount(i) > 0)
        addKeys(blocks, i, next);
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

  CacheRows<Cache> keysAt(int64_t key) const { return {attention.key, sequence, head, key}; }
  CacheRows<Cache> valuesAt(int64_t key) const { return {attention.value, sequence, head, key}; }

  int64_t scoredRows() const { return count < kFewRows ? kStepRows : count; }
  int64_t advancesOfBlock() const {
    bool turns = keysAt(0).canTurn();
    int64_t steps = turns ? attention.size() / CacheRows<Cache>::kPerBlock : 1;
    return kBlockKeys / kLanes * (steps + 2) + (count + scoredRows() - 1) / scoredRows() + count;
  }

  void addKeys(const KeyBlocks &blocks, int64_t index, Prefetch<Cache> &next) {
    int64_t first = blocks.firstKey(index), keyCount = blocks.keyCount(index);
    CacheRows<Cache> keys = keysAt(first), values = valuesAt(first);
    int64_t step = scoredRows();
    if (count < kFewRows)
      next.begin(blocks, index);
    for (int64_t j = 0; j < keyCount; j += kLanes)
      turnKeys(keys, j, smaller(kLanes, keyCount - j), next);
    for (int64_t r = 0; r < count; r += step) {
      multiply({queries + r * paddedSize, paddedSize, turnedKeys, kBlockKeys, paddedSize, scores + r * kBlockKeys,
                kBlockKeys, false},
               smaller(step, count - r), toLanes(keyCount));
      next.advance();
    }
    for (int64_t r = 0; r < count; ++r) {
      weighRow(r, first, keyCount);
      next.advance();
    }
    addValues(values, keyCount, next);
  }

  /// turnedKeys[d][j] = key j, element d, for 16 keys
  void turnKeys(const CacheRows<Cache> &keys, int64_t j, int64_t some, Prefetch<Cache> &next) {
    if (keys.canTurn()) {
      for (int64_t block = 0; block < attention.size() / CacheRows<Cache>::kPerBlock; ++block) {
        keys.turn(j, some, block, turnedKeys + j, kBlockKeys);
        next.advance();
      }
      return;
    }
    keys.copy(j, some, copiedRows, paddedSize);
    turnFloats(copiedRows, paddedSize, some, paddedSize, turnedKeys + j, kBlockKeys);
    next.advance();
  }

  /// sums += scores · values. A few rows of scores leave time to copy values where they are needed; many rows have all at once.
  void addValues(const CacheRows<Cache> &values, int64_t keyCount, Prefetch<Cache> &next) {
    int64_t step = count < kFewRows ? kLanes : kBlockKeys;
    for (int64_t j = 0; j < keyCount; j += step) {
      int64_t some = smaller(step, keyCount - j);
      bool areFloats = values.areFloats();
      if (!areFloats)
        values.copy(j, some, copiedRows, paddedValue);
      next.advance();
      multiply({scores + j, kBlockKeys, areFloats ? values.floatRow(j) : copiedRows,
                areFloats ? values.rowStride() : paddedValue, some, sums, paddedValue, true},
               count, paddedValue);
      next.advance();
    }
  }

  void weighRow(int64_t r, int64_t first, int64_t keyCount) {
    float *score = scores + r * kBlockKeys;
    multiplyScales(score, attention.keyScales, first, keyCount);
    rows[r].adjust(score, first, keyCount, attention.softcap);
    float correction = rows[r].weigh(score, first, keyCount);
    multiplyScales(score, attention.valueScales, first, keyCount);
    if (correction == 1.0f)
      return;
    for (int64_t d = 0; d < paddedValue; d += kLanes)
      store(sums + r * paddedValue + d, load(sums + r * paddedValue + d) * correction);
  }

  /// Where keys or values are integers with a scale each, their scales join the scores.
  void multiplyScales(float *score, const hone_tensor &scales, int64_t first, int64_t keyCount) const {
    if (isAbsent(scales))
      return;
    const float *from = floats(scales) + offsetOf(scales, sequence, head, first);
    int64_t stride = scales.strides[2];
    if (stride == 1) {
#pragma omp simd
      for (int64_t j = 0; j < keyCount; ++j)
        score[j] *= from[j];
      return;
    }
    for (int64_t j = 0; j < keyCount; ++j)
      score[j] *= from[j * stride];
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
  float *queries, *sums, *scores, *turnedKeys, *copiedRows;
  TileKeys<Cache> tiles;
  QueryRow rows[kBlockQueries];
  int64_t sequence = 0, head = 0, count = 0;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_H
