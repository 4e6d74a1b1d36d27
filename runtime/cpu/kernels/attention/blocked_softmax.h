// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The running softmax of a row over steps of a cache in blocks. Lanes are only put together where the maximum grows by a lot, which
// is seldom.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCKED_SOFTMAX_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCKED_SOFTMAX_H

#include "blocked_cache.h"
#include "softmax_row.h"

namespace {

constexpr float kLog2E = 1.44269504f;

/// 2^x for x ≤ 127, to 2 units in the last place; 0 below -126, NaN for NaN. The polynomial is a least-squares fit of the relative
/// error over [-1/2, 1/2], reweighted until the error is even.
inline Vector powerOfTwo(Vector x) {
  Vector n = (x + 12582912.0f) - 12582912.0f; // 1.5 · 2^23: near it floats are integers
  Vector r = x - n, p = 1.3264726e-3f;
  p = p * r + 9.6715130e-3f;
  p = p * r + 5.5507336e-2f;
  p = p * r + 2.4022242e-1f;
  p = p * r + 6.9314700e-1f;
  p = p * r + 1.0f;
  Integers bits = loadAs<Integers>(&p) + (__builtin_convertvector(n, Integers) << 23);
  return x < -126.0f ? (Vector)0.0f : loadAs<Vector>(&bits);
}

inline bool isAnyAbove(Vector vector, float limit) { return __builtin_reduce_or(vector > limit) != 0; }

/// What the logits of a step have besides the scaled products, and visibility; nothing to do for most steps of a long cache.
template <typename Step, int PIECES>
void adjustPieces(const QueryRow &row, const Step &step, float softcap, Vector (&logits)[PIECES]) {
  bool isPlain = softcap <= 0 && row.slope == 0 && !row.bias.data;
  if (isPlain && row.begin <= step.begin && step.end <= row.end)
    return;
  constexpr Integers lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (int piece = 0; piece < PIECES; ++piece) {
    int64_t first = step.firstKey(piece);
    auto from = static_cast<int32_t>(larger(smaller(row.begin - first, kLanes), 0));
    auto to = static_cast<int32_t>(larger(smaller(row.end - first, kLanes), 0));
    if (from < to && !isPlain) {
      float some[kLanes];
      store(some, logits[piece]);
      row.adjust(some, first, to, softcap); // `to` keys are all that exist
      logits[piece] = load(some);
    }
    logits[piece] = lanes < from ? (Vector)-__builtin_inff() : logits[piece];
    logits[piece] = lanes >= to ? (Vector)-__builtin_inff() : logits[piece];
  }
}

template <int PIECES> Vector largestOf(const Vector (&vectors)[PIECES]) {
  Vector most[2] = {vectors[0], vectors[1]};
  for (int piece = 2; piece < PIECES; ++piece)
    most[piece % 2] = largerLanes(vectors[piece], most[piece % 2]);
  return largerLanes(most[0], most[1]);
}

/// How far logits may lie above what weights are relative to. Less than this is not worth multiplying sums again; weights up to
/// e^8 lose nothing.
constexpr float kSlack = 8.0f;

/// Turns the logits of a step into weights relative to `row.largest`, which follows the running maximum, and adds them to `total`;
/// what sums so far must be multiplied with is the result.
template <int PIECES> float weighPieces(QueryRow &row, Vector (&logits)[PIECES], Vector &total) {
  float correction = 1.0f;
  Vector most = largestOf(logits);
  if (__builtin_expect(isAnyAbove(most, row.largest + kSlack), false)) {
    float next = largestLane(most);
    if (row.largest != -__builtin_inff()) // else there are no sums yet
      correction = vectorExp(row.largest - next);
    row.largest = next;
    total *= correction;
  }
  // Where nothing was seen yet, logits are minus infinity.
  float reference = row.largest == -__builtin_inff() ? 0.0f : row.largest * kLog2E;
  Vector added = 0;
  for (int piece = 0; piece < PIECES; ++piece) {
    logits[piece] = powerOfTwo(logits[piece] * kLog2E - reference);
    added += logits[piece];
  }
  total += added;
  return correction;
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCKED_SOFTMAX_H
