// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Online softmax of a row over steps of a cache in blocks. Lanes are only put together where the maximum grows by a
// lot, which is seldom.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_SOFTMAX_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_SOFTMAX_H

#include "kv_blocked_cache.h"
#include "softmax_row.h"

namespace {

inline bool hasPlainLogits(const QueryRow &row, float softcap) {
  return softcap <= 0 && row.slope == 0 && !row.bias.data;
}

/// Whether a row sees all keys of a step: most steps of a long cache, and of lists of blocks.
template <int PIECES, typename Step> bool seesAll(const QueryRow &row, const Step &step) {
  if (row.wholeBegin <= step.begin && step.end <= row.wholeEnd)
    return true;
  bool isSeen = row.seen != nullptr;
  for (int piece = 0; isSeen && piece < PIECES; ++piece)
    isSeen = row.seesSixteen(step.firstKey(piece));
  return isSeen;
}

/// What the logits of a step have besides the scaled products, and visibility.
template <typename Step, int PIECES>
void adjustPieces(const QueryRow &row, const Step &step, float softcap, Vector (&logits)[PIECES]) {
  if (hasPlainLogits(row, softcap) && seesAll<PIECES>(row, step))
    return;
  constexpr Integers lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (int piece = 0; piece < PIECES; ++piece) {
    int64_t first = step.firstKey(piece);
    auto from = static_cast<int32_t>(larger(smaller(row.begin - first, kLanes), 0));
    auto to = static_cast<int32_t>(larger(smaller(row.end - first, kLanes), 0));
    bool isBiasAlone = softcap <= 0 && row.slope == 0 && row.bias.data && row.bias.stride == 1 && !row.seen;
    if (isBiasAlone && from == 0 && to == kLanes) {
      logits[piece] += load(row.bias.data + first);
      continue;
    }
    if (from < to && !hasPlainLogits(row, softcap)) {
      float some[kLanes];
      store(some, logits[piece]);
      row.adjust(some, first, to, softcap); // `to` keys are all that exist
      logits[piece] = load(some);
    }
    if (row.seen && from < to)
      logits[piece] = row.hideUnseen(logits[piece], first);
    logits[piece] = lanes < from ? (Vector)-__builtin_inff() : logits[piece];
    logits[piece] = lanes >= to ? (Vector)-__builtin_inff() : logits[piece];
  }
}

template <int PIECES> Vector maximumOf(const Vector (&vectors)[PIECES]) {
  Vector most[2] = {vectors[0], vectors[1]};
  for (int piece = 2; piece < PIECES; ++piece)
    most[piece % 2] = largerLanes(vectors[piece], most[piece % 2]);
  return largerLanes(most[0], most[1]);
}

/// Exponentiates the logits of a step into attention probabilities relative to `row.maximum`, which tracks the running
/// maximum (online softmax), and adds them to `total`; what sums so far must be multiplied with is the result.
template <int PIECES> float softmaxPieces(QueryRow &row, Vector (&logits)[PIECES], Vector &total) {
  float correction = row.updateMaximum(maximumOf(logits)), reference = row.reference();
  total *= correction;
  Vector added = 0;
  for (int piece = 0; piece < PIECES; ++piece) {
    logits[piece] = boundedExp(logits[piece] - reference);
    added += logits[piece];
  }
  total += added;
  return correction;
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_SOFTMAX_H
