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

/// Weights above this share of the largest are never skipped.
constexpr float kMostSkippedWeight = 0.125f;

/// What a step of keys did to a row.
struct RowStep {
  float correction; // what the sums so far must be multiplied with
  bool hasWeights;  // else all weights are 0
};

/// A row of a block: a query of a head, the keys that it sees, and its running softmax.
struct QueryRow {
  int64_t head, query, position;
  int64_t begin, end;           // it sees no other keys
  int64_t wholeBegin, wholeEnd; // it sees all of these
  const uint64_t *seen;         // of keys from begin to end, bit j is set iff it sees key j; null where it sees all
  Row bias;
  hone::kernels::IntegerView<1> keyPositions; // of the sequence
  float slope, maximum, sum;                  // weights are relative to e^maximum
  float largest, margin; // the largest logit of what is not skipped, and how far below it steps are

  bool sees(int64_t key) const { return (seen[key / 64] >> key % 64 & 1) != 0; }

  /// Whether it sees one of the keys [first, first + count), which are no more than 64 and begin at a multiple of that.
  bool seesAny(int64_t first, int64_t count) const {
    if (first >= end || first + count <= begin)
      return false;
    return !seen || (seen[first / 64] >> first % 64 & (~uint64_t{0} >> (64 - count))) != 0;
  }

  /// Whether it sees all of sixteen keys from `first` on, a multiple of that.
  bool seesSixteen(int64_t first) const {
    return begin <= first && first + kLanes <= end && (!seen || (~seen[first / 64] >> first % 64 & 0xffff) == 0);
  }

  /// The logits of the sixteen keys from `first` on, a multiple of that, with minus infinity for those that it does not see.
  Vector hideUnseen(Vector logits, int64_t first) const {
    constexpr Integers lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Integers bits = static_cast<int32_t>(seen[first / 64] >> first % 64 & 0xffff);
    return (bits >> lanes & 1) != 0 ? logits : (Vector)-__builtin_inff();
  }

  /// Follows the maximum of logits as `most` has it, where it is far enough above; what the sums so far must be
  /// multiplied with is the result.
  float updateMaximum(Vector most) {
    if (__builtin_expect(!isAnyAbove(most, maximum + kRescaleThreshold), true))
      return 1.0f;
    float before = maximum;
    maximum = maximumLane(most);
    return before == -__builtin_inff() ? 1.0f : vectorExp(before - maximum); // without sums yet, nothing changes
  }

  /// Whether a step, whose logits have the maxima `most`, lies so far below what came before that it is left out. That follows
  /// from the row's own logits alone. The step with the largest logit is never left out: n skipped weights, each below
  /// e^-margin of the largest, are less than n e^-margin of what is kept.
  bool skips(Vector most) {
    if (__builtin_expect(!(margin < __builtin_inff()), true))
      return false;
    if (!isAnyAbove(most, largest - margin))
      return true;
    if (isAnyAbove(most, largest))
      largest = maximumLane(most);
    return false;
  }

  /// What logits are counted from. Where nothing was seen yet, they are minus infinity.
  float reference() const { return maximum == -__builtin_inff() ? 0.0f : maximum; }

  /// What the logits have besides the scaled products. `first` is the number of the first key.
  void adjust(float *score, int64_t first, int64_t count, float softcap) const {
    if (softcap > 0)
#pragma omp simd
      for (int64_t j = 0; j < count; ++j)
        score[j] = capLogit(score[j], softcap);
    if (slope != 0 && keyPositions.data)
      addDistances(score, first, count);
    else if (slope != 0)
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
    if (key < begin || key >= end || (seen && !sees(key)))
      return -__builtin_inff();
    if (slope != 0)
      score += slope * distanceTo(key);
    return bias.data ? score + bias[key] : score;
  }

  /// Exponentiates kBlockKeys scores into attention probabilities. Keys that are not visible, and those from `count` on, get
  /// weight 0.
  RowStep exponentiate(float *score, int64_t first, int64_t count) {
    if (!maskScores(score, first, count))
      return hide(score);
    Vector most = load(score);
    for (int64_t j = kLanes; j < kBlockKeys; j += kLanes)
      most = largerLanes(load(score + j), most);
    if (skips(most))
      return hide(score);
    float correction = updateMaximum(most), relative = reference();
    Vector total = 0;
    for (int64_t j = 0; j < kBlockKeys; j += kLanes) {
      Vector weights = boundedExp(load(score + j) - relative);
      total += weights;
      store(score + j, weights);
    }
    sum = sum * correction + sumLanes(total);
    return {correction, true};
  }

  /// Makes those of kBlockKeys scores minus infinity that are of keys that are not visible, or from `count` on. False where that is all of
  /// them, which stay as they are then.
  bool maskScores(float *score, int64_t first, int64_t count) const {
    int64_t from = larger(begin - first, 0), to = smaller(end - first, count);
    if (from >= to)
      return false;
    if (from > 0 || to < kBlockKeys)
      mask(score, static_cast<int32_t>(from), static_cast<int32_t>(to));
    if (__builtin_expect(seen != nullptr, false))
      hideUnseen(score, first, to);
    return true;
  }

private:
  // Functions of their own, that loops over rows without such keys have the registers.
  [[gnu::noinline]] void hideUnseen(float *score, int64_t first, int64_t count) const {
    for (int64_t j = 0; j < count; j += kLanes)
      store(score + j, hideUnseen(load(score + j), first + j));
  }

  [[gnu::noinline]] void addDistances(float *score, int64_t first, int64_t count) const {
    for (int64_t j = 0; j < count; ++j)
      score[j] += slope * distanceTo(first + j);
  }

  float distanceTo(int64_t key) const {
    int64_t other = keyPositions.data ? hone::kernels::elementOf(keyPositions, key) : key;
    return static_cast<float>(other - position);
  }

  static RowStep hide(float *score) {
    for (int64_t j = 0; j < kBlockKeys; j += kLanes)
      store(score + j, 0);
    return {1.0f, false};
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
