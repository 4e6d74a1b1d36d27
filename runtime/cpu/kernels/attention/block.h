// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention of a block of query rows in one pass over keys: softmax with a running maximum and sum (online softmax;
// Milakov and Gimelshein, 2018), by blocks of queries and keys (Dao et al., 2022). The query heads that share a key
// head are rows of one block, so that keys and values are read once for all of them.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_H

#include "../natural_log.h"
#include "marked_keys.h"

namespace {

/// Sums of one row over a part of the keys: attention probabilities relative to `maximum`.
struct PartialRow {
  float maximum, sum;
  float *values;
};

/// The rows [first, first + count) of one sequence and key head, and memory to work in. `Keys` adds keys to their sums.
template <typename Keys> class Block {
public:
  explicit Block(const Attention &attention)
      : attention(attention), paddedSize(toLanes(attention.size())), paddedValue(toLanes(attention.valueSize())),
        mostRows(smaller(kBlockQueries, attention.group() * attention.queries())), seenKeys(attention, mostRows),
        memory(mostRows * (paddedSize + paddedValue)), queries(memory.data()), sums(queries + mostRows * paddedSize),
        keys(attention, mostRows) {}

  /// Adds up keys [firstKey, endKey) as far as they are visible. Sinks count with key 0, or at the end where lse is asked for.
  void run(int64_t b, int64_t keyHead, int64_t first, int64_t rowCount, int64_t firstKey, int64_t endKey) {
    sequence = b;
    head = keyHead;
    firstRow = first;
    count = rowCount;
    int64_t begin = endKey, end = firstKey;
    for (int64_t r = 0; r < count; ++r)
      beginRow(r, first + r, firstKey == 0);
    SeenKeys seen = seenKeys.mark(sequence, rows, count, {firstKey, endKey});
    for (int64_t r = 0; r < count; ++r) {
      begin = smaller(begin, rows[r].begin);
      end = larger(end, rows[r].end);
    }
    keys.run({sequence, head, rows, count, queries, paddedSize, sums, paddedValue, seen}, larger(begin, firstKey),
             smaller(end, endKey));
  }

  void writeRows() const {
    for (int64_t r = 0; r < count; ++r)
      writeRow(r, attention.hasLse() ? writeLse(rows[r]) : inverse(rows[r].sum), sums + r * paddedValue);
  }

  /// Copies the sums of the rows to where they are merged with those of other splits.
  void writePartial(PartialRow *partial) const {
    for (int64_t r = 0; r < count; ++r) {
      partial[r].maximum = rows[r].maximum;
      partial[r].sum = rows[r].sum;
      for (int64_t d = 0; d < paddedValue; ++d)
        partial[r].values[d] = sums[r * paddedValue + d];
    }
  }

  /// Merges the partial softmax sums of `parts` splits of the keys; row r of part i is partial[i * partStride + r].
  void merge(const PartialRow *partial, int64_t parts, int64_t partStride) {
    for (int64_t r = 0; r < count; ++r) {
      float maximum = -__builtin_inff(), sum = 0;
      for (int64_t i = 0; i < parts; ++i)
        maximum = partial[i * partStride + r].maximum > maximum ? partial[i * partStride + r].maximum : maximum;
      float *total = sums + r * paddedValue;
      for (int64_t d = 0; d < paddedValue; ++d)
        total[d] = 0;
      for (int64_t i = 0; i < parts; ++i) {
        const PartialRow &part = partial[i * partStride + r];
        float factor = part.sum == 0 ? 0 : vectorExp(part.maximum - maximum);
        sum += factor * part.sum;
        for (int64_t d = 0; d < paddedValue; ++d)
          total[d] += factor * part.values[d];
      }
      rows[r].maximum = maximum;
      rows[r].sum = sum;
    }
  }

private:
  /// Where row `index` of the sequence and key head lies in a tensor of queries or outputs.
  Row rowAt(const hone_tensor &tensor, int64_t index) const { return attention.rowAt(tensor, sequence, head, index); }

  /// Rows of a head have a large stride: what is read or written next is prefetched some rows before.
  template <int IS_WRITTEN> void prefetchRow(const hone_tensor &tensor, int64_t index) const {
    constexpr int64_t distance = 8, lineFloats = 16;
    if (index + distance >= attention.group() * attention.queries() || tensor.strides[3] != 1)
      return;
    const float *from = rowAt(tensor, index + distance).data;
    for (int64_t d = 0; d < tensor.sizes[3]; d += lineFloats)
      __builtin_prefetch(from + d, IS_WRITTEN, 3);
  }

  void beginRow(int64_t r, int64_t index, bool withSinks) {
    QueryRow &row = rows[r];
    describeRow(attention, sequence, attention.headOf(head, index), attention.queryOf(index), row);
    // A sink is a key without a value that every query sees.
    bool hasSink = withSinks && attention.sinks.data && !attention.hasLse();
    row.maximum = hasSink ? attention.sinks[row.head] : -__builtin_inff();
    row.sum = hasSink ? 1.0f : 0.0f;
    row.largest = row.maximum;
    row.margin = marginOf(row.end - row.begin);
    float *to = queries + r * paddedSize;
    withKnownStrides(
        [&](Row from) {
          for (int64_t d = 0; d < attention.size(); ++d)
            to[d] = from[d] * attention.scale;
        },
        rowAt(attention.query, index));
    prefetchRow<0>(attention.query, index);
    for (int64_t d = attention.size(); d < paddedSize; ++d)
      to[d] = 0;
    for (int64_t d = 0; d < paddedValue; ++d)
      sums[r * paddedValue + d] = 0;
  }

  /// How far below the largest logit the steps of a row lie that it skips, one that sees at most `count` keys.
  float marginOf(int64_t count) const {
    if (!(attention.skip > 0))
      return __builtin_inff();
    float share = attention.skip / static_cast<float>(larger(count, 1));
    return -naturalLog(share < kMostSkippedWeight ? share : kMostSkippedWeight);
  }

  static float inverse(float sum) { return sum == 0 ? 0.0f : 1.0f / sum; } // 0: nothing was visible

  /// Writes the lse of a row, without its sink; what sums of the row are to be multiplied with is the result.
  float writeLse(const QueryRow &row) const {
    const hone_tensor &lse = attention.lse;
    floats(lse)[offsetOf(lse, sequence, row.head, row.query)] =
        row.sum == 0 ? -__builtin_inff() : row.maximum + naturalLog(row.sum);
    if (!attention.sinks.data)
      return inverse(row.sum);
    float sink = attention.sinks[row.head], most = sink > row.maximum ? sink : row.maximum;
    float factor = row.sum == 0 ? 0.0f : vectorExp(row.maximum - most);
    return factor * inverse(row.sum * factor + (most == -__builtin_inff() ? 0.0f : vectorExp(sink - most)));
  }

  void writeRow(int64_t r, float factor, const float *values) const {
    withKnownStrides(
        [&](Row to) {
          for (int64_t d = 0; d < attention.valueSize(); ++d)
            to[d] = values[d] * factor;
        },
        rowAt(attention.out, firstRow + r));
    prefetchRow<1>(attention.out, firstRow + r);
  }

  const Attention &attention;
  int64_t paddedSize, paddedValue, mostRows;
  MarkedKeys seenKeys;
  Scratch<float> memory;
  float *queries, *sums;
  Keys keys;
  QueryRow rows[kBlockQueries];
  int64_t sequence = 0, head = 0, firstRow = 0, count = 0;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_H
