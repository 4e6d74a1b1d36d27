// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Queries and weights as integers of sixteen bits: a row of queries under one step, the weights of a step under
// another. That is as much as sums in f32 of long caches lose.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_SOFTMAX_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_SOFTMAX_H

#include "kv_blocked_softmax.h"
#include "kv_quantized_dot.h"
#include "row_block.h"

namespace {

constexpr float kRounding = 12582912.0f; // 1.5 · 2^23: near it floats are integers

inline Integers roundToIntegers(Vector x) {
  Vector shifted = x + kRounding;
  return loadAs<Integers>(&shifted) - 0x4b400000;
}

/// 2^t for t up to 127, by 2^n for the whole number n below and a polynomial for the rest, a least-squares fit of the
/// relative error over [0, 1], reweighted until the error is even: 3e-6. 0 for -infinity, NaN for NaN.
inline Vector powerOfTwo(Vector t) {
#ifdef __AVX512DQ__
  constexpr int towardsLeast = 9; // without exceptions
  Vector r = (Vector)_mm512_reduce_ps((__m512)t, towardsLeast);
#else
  Vector n = __builtin_elementwise_floor(t), r = t - n;
#endif
  Vector p = 1.35341672e-2f;
  p = p * r + 5.20114619e-2f;
  p = p * r + 2.41442756e-1f;
  p = p * r + 6.93003835e-1f;
  p = p * r + 1.00000259f;
#ifdef __AVX512DQ__
  return (Vector)_mm512_scalef_ps((__m512)p, (__m512)t);
#else
  Integers bits = loadAs<Integers>(&p) + (__builtin_convertvector(n, Integers) << 23);
  return t < -126.0f ? (Vector)0.0f : loadAs<Vector>(&bits);
#endif
}

/// A row of queries x ≈ step · integers.
struct QuantizedQuery {
  float step, inverse;
  float sum; // of the row by its step

  QuantizedQuery(const float *query, int64_t size) {
    Vector most = 0, total = 0;
    bool isFinite = true;
    for (int64_t d = 0; d < size; d += kLanes) {
      Vector x = load(query + d), magnitude = x < 0 ? -x : x;
      isFinite = isFinite && !__builtin_reduce_or(!(magnitude < __builtin_inff()));
      most = largerLanes(magnitude, most);
      total += x;
    }
    // Sums of products with codes have 32 bits.
    float limit = static_cast<float>(kMostQuery / ((size + kMostSize - 1) / kMostSize));
    float maximum = maximumLane(most);
    step = isFinite ? maximum / limit : __builtin_nanf("");
    inverse = isFinite && maximum > kLeast ? limit / maximum : 0;
    sum = sumLanes(total) * inverse;
  }

  /// Sixteen integers.
  Integers round(Vector x) const { return inverse == 0 ? (Integers)0 : roundToIntegers(x * inverse); }

private:
  static constexpr int64_t kMostSize = 512;
  static constexpr float kLeast = 1e-30f; // what is smaller counts as 0
};

/// Weights of the keys of a step as integers.
template <int UNITS> struct QuantizedProbabilities {
  float correction; // what the sums so far must be multiplied with
  float step;       // of products of the integers with codes
  FactorWords words[UNITS];
};

/// What rows of a block add up beside their sums of values, by lanes.
struct RowTotals {
  Vector weights, bases;
};

/// Writes the sum of the weights of row `r`, and adds what bases come to to each of its `columns` sixteens of sums.
template <typename Cache> void finishRow(const RowBlock &block, int64_t r, const RowTotals &total, int64_t columns) {
  block.rows[r].sum = sumLanes(total.weights);
  if constexpr (Cache::kHasBases) {
    float base = sumLanes(total.bases), *sums = block.sums + r * block.sumStride;
    for (int64_t column = 0; column < columns; ++column)
      store(sums + column * kLanes, load(sums + column * kLanes) + base);
  }
}

/// Steps and bases of keys and of values.
template <typename Cache, int UNITS> struct CacheNumbers {
  StepNumbers<Cache, UNITS> keys, values;
  ValueSteps<Cache, UNITS> valueSteps; // where a row sees all keys

  /// `keyBytes` and `valueBytes` are those of the codes of a KV micro-block.
  void take(const QuantizedStep<Cache, UNITS> &step, int64_t keyBytes, int64_t valueBytes) {
    keys.take(step.keys, keyBytes);
    values.take(step.values, valueBytes);
    valueSteps.take(values);
  }
};

/// From products of integers to logits, but for a factor, which is the result.
template <typename Cache, int UNITS, int PIECES>
[[gnu::always_inline]] inline float
scaleLogits(const QueryRow &row, const QuantizedQuery &query, const QuantizedStep<Cache, UNITS> &step, float softcap,
            bool isPlainStep, const StepNumbers<Cache, UNITS> &keys, Vector (&logits)[PIECES]) {
  for (int piece = 0; piece < PIECES; ++piece) {
    logits[piece] *= keys.step(piece);
    if constexpr (Cache::kHasBases)
      logits[piece] += keys.base(piece) * query.sum;
  }
  if (__builtin_expect(isPlainStep, true))
    return query.step;
  Vector some[PIECES]; // apart, as these lie in memory, where logits of plain steps need not
  for (int piece = 0; piece < PIECES; ++piece)
    some[piece] = logits[piece] * query.step;
  adjustPieces(row, step, softcap, some);
  for (int piece = 0; piece < PIECES; ++piece)
    logits[piece] = some[piece];
  return 1;
}

/// Online softmax of rows over a step: from products of queries with codes, as integers of both, to weights of values.
/// Weights are relative to the largest of the step, and become relative to `row.maximum` where they are summed. All
/// rows are scaled before the first is exponentiated, as the largest of a row is long known then.
class QuantizedRows {
public:
  /// Converts products of row `r` into logits, but for a factor that is remembered; whether the row does not skip the step.
  template <typename Cache, int UNITS, int PIECES>
  [[gnu::always_inline]] bool scale(int64_t r, QueryRow &row, const QuantizedQuery &query,
                                    const QuantizedStep<Cache, UNITS> &step, float softcap,
                                    const StepNumbers<Cache, UNITS> &keys, Vector (&logits)[PIECES]) {
    constexpr float log2E = 1.44269504f;
    isWhole[r] = seesAll<PIECES>(row, step);
    bool isPlainStep = isWhole[r] && hasPlainLogits(row, softcap);
    float scale = scaleLogits<Cache, UNITS>(row, query, step, softcap, isPlainStep, keys, logits);
    float most = maximumLane(maximumOf(logits)) * scale;
    isSkipped[r] = row.skips((Vector)most);
    corrections[r] = isSkipped[r] ? 1.0f : row.updateMaximum((Vector)most);
    above[r] = most - row.reference();
    float shift = most == -__builtin_inff() ? 0 : most;
    if (!isPlainStep) { // a bias may be the least float, of which no multiple is one
      for (Vector &some : logits)
        some -= shift;
      shift = 0;
    }
    factors[r] = scale * log2E;
    offsets[r] = kMostWeightLog2 - shift * log2E;
    return !isSkipped[r];
  }

  /// Between scaling `count` rows and weighing them.
  void finishScaling(int64_t count) {
    for (int64_t r = 0; r < count; r += kLanes)
      store(units + r, boundedExp(load(above + r)) * (1 / kMostWeight));
  }

  /// Weights of row `r`, whose scaled products are `logits`.
  template <typename Cache, int UNITS, int PIECES>
  [[gnu::always_inline]] QuantizedProbabilities<UNITS>
  exponentiate(int64_t r, const CacheNumbers<Cache, UNITS> &numbers, const Vector (&logits)[PIECES],
               RowTotals &totals) const {
    if (__builtin_expect(isSkipped[r], false))
      return {1.0f, 0.0f, {}};
    ValueSteps<Cache, UNITS> own;
    if (__builtin_expect(!isWhole[r], false))
      own.take(numbers.values, logits);
    const auto &steps = isWhole[r] ? numbers.valueSteps : own;
    QuantizedProbabilities<UNITS> result;
    result.correction = corrections[r];
    result.step = units[r] * steps.maximum;
    Vector added = 0, bases = 0;
    for (int word = 0; word < UNITS; ++word) {
      Words four[4];
      for (int part = 0; part < 4; ++part) {
        int piece = 4 * word + part;
        Vector weight = powerOfTwo(logits[piece] * factors[r] + offsets[r]);
        added += weight;
        if constexpr (Cache::kHasBases)
          bases += weight * numbers.values.base(piece);
        Vector integers = weight * steps[piece] + kRounding;
        four[part] = loadAs<Words>(&integers);
      }
      result.words[word] = weightWords(four);
    }
    totals.weights = totals.weights * result.correction + added * units[r];
    if constexpr (Cache::kHasBases)
      totals.bases = totals.bases * result.correction + bases * units[r];
    return result;
  }

private:
  static constexpr int64_t kMostRows = 2 * kLanes;

  alignas(64) float above[kMostRows] = {},
                    units[kMostRows]; // largest logits over what sums are relative to, powers of e of it
  float corrections[kMostRows], factors[kMostRows], offsets[kMostRows];
  bool isSkipped[kMostRows] = {};
  bool isWhole[kMostRows] = {}; // whether a row sees all keys of the step
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_SOFTMAX_H
