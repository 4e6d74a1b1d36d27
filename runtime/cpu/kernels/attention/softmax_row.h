// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A query's row of scores: logits, visibility, and online softmax.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_SOFTMAX_ROW_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_SOFTMAX_ROW_H

#include "../vector_exp.h"
#include "key_blocks.h"

namespace {

template <typename Lanes> Lanes largerLanes(Lanes a, Lanes b) { return a > b ? a : b; }

inline float maximumLane(Vector vector) {
  auto eight = largerLanes(vector.lo, vector.hi);
  auto four = largerLanes(eight.lo, eight.hi);
  auto two = largerLanes(four.lo, four.hi);
  return two.x > two.y ? two.x : two.y;
}

/// softcap · tanh(logit / softcap), by tanh u = 1 - 2 / (1 + e^2u)
inline float capLogit(float logit, float softcap) {
  return softcap * (1.0f - 2.0f / (1.0f + vectorExp(2.0f * logit / softcap)));
}

inline bool isAnyAbove(Vector vector, float limit) { return __builtin_reduce_or(vector > limit) != 0; }

/// How far logits may lie above what weights are relative to. Less than this is not worth multiplying sums again;
/// weights up to e^8 lose nothing.
constexpr float kRescaleThreshold = 8.0f;

/// A row of a block: a query of a head, and its running softmax.
struct QueryRow {
  int64_t head, query, position, begin, end;
  Row bias;
  float slope, maximum, sum; // weights are relative to e^largest

  /// Follows the maximum of logits as `most` has it, where it is far enough above; what the sums so far must be
  /// multiplied with is the result.
  float updateMaximum(Vector most) {
    if (__builtin_expect(!isAnyAbove(most, maximum + kRescaleThreshold), true))
      return 1.0f;
    float before = maximum;
    maximum = maximumLane(most);
    return before == -__builtin_inff() ? 1.0f : vectorExp(before - maximum); // without sums yet, nothing changes
  }

  /// What logits are counted from. Where nothing was seen yet, they are minus infinity.
  float reference() const { return maximum == -__builtin_inff() ? 0.0f : maximum; }

  /// What the logits have besides the scaled products. `first` is the number of the first key.
  void adjust(float *score, int64_t first, int64_t count, float softcap) const {
    if (softcap > 0)
#pragma omp simd
      for (int64_t j = 0; j < count; ++j)
        score[j] = capLogit(score[j], softcap);
    if (slope != 0)
#pragma omp simd
      for (int64_t j = 0; j < count; ++j)
        score[j] += slope * static_cast<float>(first + j - position);
    if (bias.data)
      withKnownStrides(
          [=](Row known) {
#pragma omp simd
            for (int64_t j = 0; j < count; ++j)
              score[j] += known[first + j];
          },
          bias);
  }

  /// The logit of one key: its score with what `adjust` adds, or minus infinity where it is not visible.
  float logitOf(float score, int64_t key) const {
    if (key < begin || key >= end)
      return -__builtin_inff();
    if (slope != 0)
      score += slope * static_cast<float>(key - position);
    return bias.data ? score + bias[key] : score;
  }

  /// Exponentiates kBlockKeys scores into attention probabilities; what the sums so far must be multiplied with is the
  /// result. Keys that are not visible, and those from `count` on, get weight 0.
  float exponentiate(float *score, int64_t first, int64_t count) {
    int64_t from = larger(begin - first, 0), to = smaller(end - first, count);
    if (from >= to)
      return hide(score);
    if (from > 0 || to < kBlockKeys)
      mask(score, static_cast<int32_t>(from), static_cast<int32_t>(to));
    Vector most = load(score);
    for (int64_t j = kLanes; j < kBlockKeys; j += kLanes)
      most = largerLanes(load(score + j), most);
    float correction = updateMaximum(most), relative = reference();
    Vector total = 0;
    for (int64_t j = 0; j < kBlockKeys; j += kLanes) {
      Vector weights = boundedExp(load(score + j) - relative);
      total += weights;
      store(score + j, weights);
    }
    sum = sum * correction + sumLanes(total);
    return correction;
  }

private:
  static float hide(float *score) {
    for (int64_t j = 0; j < kBlockKeys; j += kLanes)
      store(score + j, 0);
    return 1.0f;
  }

  static void mask(float *score, int32_t from, int32_t to) {
    constexpr Integers lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (int32_t j = 0; j < kBlockKeys; j += kLanes) {
      Integers index = lanes + j;
      Vector logits = load(score + j);
      logits = index < from ? (Vector)-__builtin_inff() : logits;
      store(score + j, index >= to ? (Vector)-__builtin_inff() : logits);
    }
  }
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_SOFTMAX_ROW_H
