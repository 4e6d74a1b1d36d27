// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Eight query rows as tiles of AMX see them: online softmax of all at once, key by key.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROW_TILE_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROW_TILE_H

#ifdef __AMX_BF16__

#include "cache_tiles.h"
#include "softmax_row.h"

namespace {

constexpr int64_t kRowsOfTile = 8; // each with two bf16 limbs

inline Vector twice(const float *eight) {
  Vector both;
  __builtin_memcpy(&both, eight, sizeof both / 2);
  return lowLanes<8>(both, both);
}

inline Vector swapHalves(Vector v) {
  return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
}

inline Vector keepSum(Vector low, Vector high) { return lowLanes<8>(low, high) + highLanes<8>(low, high); }

/// `low` for the first eight lanes, `high` for the others.
inline Vector halves(float low, float high) { return lowLanes<8>((Vector)low, (Vector)high); }

/// Scores of a block: vector 16 p + t has key 32 p + t for the eight rows, then key 32 p + 16 + t.
struct BlockScores {
  alignas(64) float lanes[kBlockKeys / 2][kLanes];

  static int64_t keyOf(int64_t vector, int64_t half) { return vector / 16 * 32 + half * 16 + vector % 16; }
};

/// Up to eight rows [first, first + count) of a block of rows.
class RowTile {
public:
  void begin(QueryRow *of, int64_t some) {
    rows = of;
    count = some;
    float most[kRowsOfTile], sums[kRowsOfTile];
    mostBegin = 0;
    leastEnd = INT64_MAX;
    end = 0;
    isPlain = true;
    isMasked = false;
    for (int64_t r = 0; r < kRowsOfTile; ++r) {
      most[r] = r < count ? rows[r].maximum : 0;
      sums[r] = r < count ? rows[r].sum : 0;
      if (r >= count)
        continue;
      mostBegin = larger(mostBegin, rows[r].wholeBegin);
      leastEnd = smaller(leastEnd, rows[r].wholeEnd);
      end = larger(end, rows[r].end);
      isMasked = isMasked || rows[r].seen;
      isPlain = isPlain && rows[r].slope == 0 && !rows[r].bias.data;
    }
    maximum = twice(most);
    total = twice(sums);
  }

  void finish() const {
    for (int64_t r = 0; r < count; ++r) {
      rows[r].maximum = maximum[r];
      rows[r].sum = total[r];
    }
  }

  /// Whether a row sees one of the keys of a block; the block begins at a multiple of its size where rows see more or less
  /// than an interval.
  bool sees(int64_t firstKey) const {
    bool isSeen = !isMasked;
    for (int64_t r = 0; r < count && !isSeen; ++r)
      isSeen = rows[r].seesAny(firstKey, kBlockKeys);
    return isSeen && firstKey < end;
  }

  /// What the logits have besides the scaled products, and visibility.
  void adjust(BlockScores &scores, int64_t firstKey, int64_t keyCount, float softcap) const {
    float *all = scores.lanes[0];
    if (softcap > 0)
#pragma omp simd
      for (int64_t i = 0; i < kBlockKeys * kRowsOfTile; ++i)
        all[i] = capLogit(all[i], softcap);
    if (isPlain && firstKey >= mostBegin && firstKey + kBlockKeys <= leastEnd && keyCount == kBlockKeys)
      return;
    for (int64_t vector = 0; vector < kBlockKeys / 2; ++vector)
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        int64_t j = BlockScores::keyOf(vector, lane / kRowsOfTile), key = firstKey + j;
        float &score = scores.lanes[vector][lane];
        score = lane % kRowsOfTile < count && j < keyCount ? rows[lane % kRowsOfTile].logitOf(score, key)
                                                           : -__builtin_inff();
      }
  }

  /// Exponentiates scores into attention probabilities under the running maxima; what the sums so far must be
  /// multiplied with is the result.
  template <typename Cache> Vector exponentiate(BlockScores &scores, Prefetch<Cache> &prefetcher) {
    Vector most[2] = {maximum, maximum};
    for (int64_t i = 0; i < kBlockKeys / 2; i += 2)
      for (int64_t k = 0; k < 2; ++k) {
        Vector logits = load(scores.lanes[i + k]);
        most[k] = logits > most[k] ? logits : most[k];
      }
    Vector next = most[1] > most[0] ? most[1] : most[0], other = swapHalves(next);
    next = other > next ? other : next;
    // Where nothing was seen yet, exponents are of minus infinity.
    Vector reference = next == -__builtin_inff() ? (Vector)0.0f : next;
    Vector added[2] = {0, 0};
    for (int64_t i = 0; i < kBlockKeys / 2; i += 2) {
      if (i % 4 == 0)
        prefetcher.advance();
      for (int64_t k = 0; k < 2; ++k) {
        Vector weights = boundedExp(load(scores.lanes[i + k]) - reference);
        added[k] += weights;
        store(scores.lanes[i + k], weights);
      }
    }
    Vector correction = boundedExp(maximum - reference), sum = added[0] + added[1];
    maximum = next;
    total = total * correction + (sum + swapHalves(sum));
    return correction;
  }

private:
  QueryRow *rows = nullptr;
  int64_t count = 0, mostBegin = 0, leastEnd = 0, end = 0;
  bool isPlain = true, isMasked = false;
  Vector maximum = 0, total = 0; // of the rows, twice
};

} // namespace

#endif // __AMX_BF16__
#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROW_TILE_H
