// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Query rows that attend to the same keys.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROW_BLOCK_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROW_BLOCK_H

#include "problem.h"
#include "softmax_row.h"

namespace {

constexpr int64_t kBlockQueries = 128; // most rows of a block
constexpr int64_t kGemvRows = 32;      // below this, memory must not rest while a block of keys is worked on

inline int64_t toLanes(int64_t size) { return (size + kLanes - 1) / kLanes * kLanes; }

/// What is known of a query of a head before its softmax begins.
inline void describeRow(const Attention &attention, int64_t sequence, int64_t head, int64_t query, QueryRow &row) {
  row.head = head;
  row.query = query;
  row.position = hone::kernels::queryPositionOf(attention.visibility, sequence, query);
  hone::kernels::KeyInterval interval = hone::kernels::intervalOf(attention.visibility, sequence, query);
  if (attention.hasPaths())
    interval.end = hone::kernels::firstDraftOf(attention.visibility, sequence) +
                   __builtin_popcountll(attention.pathOf(sequence, query));
  row.begin = row.wholeBegin = interval.begin;
  row.end = row.wholeEnd = interval.end;
  row.seen = nullptr;
  row.keyPositions = {};
  row.bias = attention.biasRow(sequence, head, query);
  row.slope = attention.alibi.data ? attention.alibi[head] : 0.0f;
}

/// Rows of one sequence and key head: queries[count][queryStride], scaled; sums[count][sumStride].
struct RowBlock {
  int64_t sequence, head;
  QueryRow *rows;
  int64_t count;
  const float *queries;
  int64_t queryStride;
  float *sums;
  int64_t sumStride;
  SeenKeys seen;

  /// Whether one of the rows [first, first + number) sees a key of [begin, end).
  bool sees(int64_t first, int64_t number, int64_t begin, int64_t end) const {
    bool isSeen = false;
    for (int64_t r = first; r < first + number; ++r)
      isSeen |= rows[r].begin < end && begin < rows[r].end;
    return isSeen;
  }

  /// Whether one of the rows sees a key of a step of blocks.
  template <typename Step> bool seesStep(int64_t first, int64_t number, const Step &step) const {
    if (!sees(first, number, step.begin, step.end))
      return false;
    for (int64_t r = first; seen.words && r < first + number; ++r)
      for (int64_t key : step.firstKeys)
        if (rows[r].seesAny(key, Step::kUnitKeys))
          return true;
    return !seen.words;
  }
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROW_BLOCK_H
