// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a step of floating-point weights of which two of every four inputs are kept multiplies with activations: its
// indices say of each output which two of four activations it takes. packing/pack_sparse.h has the layout.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_FORMATS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_FORMATS_H

#include "columns.h"
#include "dense_formats.h"

#include <immintrin.h>

namespace {

/// A word of indices is for so many inputs, in steps of four; so many bits down are those of the next step.
constexpr int64_t kChunkInputs = 32, kChunkSteps = 8;
constexpr uint32_t kNextStep = 2;

/// Lines of values of 16 bits for a line of indices.
constexpr int64_t kLinesOfIndices = 8;

// Sums in registers beside the weights of four panels, or of one.
#ifdef __AVX512F__
constexpr int kSparseSums = 20, kSparseRows = 16;
#else
constexpr int kSparseSums = 4, kSparseRows = 4;
#endif

/// One of four floats for each output, by the low two bits of its word; the rest of the word does not matter.
inline Vector pick(const float *four, Words index) {
#ifdef __AVX512F__
  return (Vector)_mm512_permutevar_ps(_mm512_broadcast_f32x4(_mm_loadu_ps(four)), (__m512i)index);
#else
  __m256 both = _mm256_broadcast_ps(reinterpret_cast<const __m128 *>(four));
  auto low = (__m256i)index.lo, high = (__m256i)index.hi;
  typedef float Eight __attribute__((ext_vector_type(8)));
  return __builtin_shufflevector((Eight)_mm256_permutevar_ps(both, low), (Eight)_mm256_permutevar_ps(both, high), 0, 1,
                                 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
}

/// Activations stay f32. `Load` has the bytes of a step, and loads the two kept elements of sixteen outputs.
template <typename Load> struct SparseFloats {
  using Target = F32Format; // what a step is unpacked to
  static constexpr int kBytes = Load::kBytes, kStepWords = 4;
  struct Weights {
    Vector values[2];
    Words picks[2];
  };

  /// The indices of the step are the lowest two bits of the halves of `indices`.
  static Weights load(const uint8_t *from, Words indices) {
    Weights weights;
    Load::load(from, weights.values);
    weights.picks[0] = indices;
    weights.picks[1] = indices >> 16;
    return weights;
  }

  /// Adds the products with a row, whose words for the step are at `x`.
  static void add(Vector &sum, const Weights &weights, const float *x) {
    sum += pick(x, weights.picks[0]) * weights.values[0];
    sum += pick(x, weights.picks[1]) * weights.values[1];
  }

  /// Writes a step as `Target` has it: four inputs of sixteen outputs.
  static void unpack(const Weights &weights, float *to) {
    Words first = weights.picks[0] & 3, second = weights.picks[1] & 3;
    for (uint32_t input = 0; input < 4; ++input, to += kLanes) {
      Vector line = first == input ? weights.values[0] : (Vector)0.0f;
      store(to, second == input ? weights.values[1] : line);
    }
  }
};

struct LoadF32 {
  static constexpr int kBytes = 128;
  static void load(const uint8_t *from, Vector *values) {
    values[0] = loadAs<Vector>(from);
    values[1] = loadAs<Vector>(from + 64);
  }
};

struct LoadF16 {
  static constexpr int kBytes = 64;
  static void load(const uint8_t *from, Vector *values) {
    values[0] = loadHalves(from);
    values[1] = loadHalves(from + 32);
  }
};

struct LoadBf16 {
  static constexpr int kBytes = 64;
  static void load(const uint8_t *from, Vector *values) {
    WidenedBf16Format::Weights weights = WidenedBf16Format::load(from);
    values[0] = weights.even;
    values[1] = weights.odd;
  }
};
using WidenedSparseBf16 = SparseFloats<LoadBf16>;

#ifdef __AVX512BF16__
/// Activations are rounded to bf16: a dot product takes both kept elements of an output.
struct SparseBf16 {
  using Target = Bf16Format;
  static constexpr int kBytes = 64, kStepWords = 2;
  struct Weights {
    __m512i pairs, picks; // of 16 bits each
  };

  static Weights load(const uint8_t *from, Words indices) { return {_mm512_loadu_si512(from), (__m512i)indices}; }

  /// Four activations in every 64 bits: the permutation may look at more bits of an index than two.
  static void add(Vector &sum, const Weights &weights, const float *x) {
    __m512i four = _mm512_set1_epi64(loadAs<int64_t>(x));
    auto picked = (__m512bh)_mm512_permutexvar_epi16(weights.picks, four);
    sum = (Vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)weights.pairs, picked);
  }

  /// Two pairs of inputs: kept elements move up by sixteen bits an input, and out of the pair that they are not in.
  static void unpack(const Weights &weights, float *to) {
    __m512i low = _mm512_set1_epi32(0xffff), three = _mm512_set1_epi32(3), pair = _mm512_set1_epi32(32);
    __m512i first = _mm512_and_si512(weights.pairs, low), second = _mm512_srli_epi32(weights.pairs, 16);
    __m512i place = _mm512_slli_epi32(_mm512_and_si512(weights.picks, three), 4);
    __m512i other = _mm512_slli_epi32(_mm512_and_si512(_mm512_srli_epi32(weights.picks, 16), three), 4);
    store(to, (Vector)_mm512_or_si512(_mm512_sllv_epi32(first, place), _mm512_sllv_epi32(second, other)));
    place = _mm512_sub_epi32(place, pair);
    other = _mm512_sub_epi32(other, pair);
    store(to + kLanes, (Vector)_mm512_or_si512(_mm512_sllv_epi32(first, place), _mm512_sllv_epi32(second, other)));
  }
};
#else
using SparseBf16 = WidenedSparseBf16;
#endif

using SparseF32 = SparseFloats<LoadF32>;
using SparseF16 = SparseFloats<LoadF16>;

/// The two planes of a weight. A step is a chunk.
template <typename Format> struct SparseWeight {
  using Target = typename Format::Target;
  static constexpr int64_t kTargetSteps = kChunkInputs / (Target::kStepWords * Target::kWordInputs);
  static constexpr bool kIsUnpacked = true;

  const uint8_t *values, *indices;
  int64_t valueBytes, indexBytes; // from panel to panel
  int64_t panels, steps;

  SparseWeight(const hone_tensor &values, const hone_tensor &indices)
      : values(static_cast<const uint8_t *>(values.data)), indices(static_cast<const uint8_t *>(indices.data)),
        valueBytes(panelBytesOf(values)), indexBytes(panelBytesOf(indices)), panels(indices.sizes[0]),
        steps(indices.sizes[1]) {}

  /// The same planes, in another way to multiply them.
  template <typename Other>
  explicit SparseWeight(const SparseWeight<Other> &other)
      : values(other.values), indices(other.indices), valueBytes(other.valueBytes), indexBytes(other.indexBytes),
        panels(other.panels), steps(other.steps) {
    static_assert(Other::kBytes == Format::kBytes);
  }

  static constexpr int64_t kLineBytes = 64, kValueBytes = kChunkSteps * Format::kBytes;

  const uint8_t *valuesAt(int64_t panel, int64_t step) const {
    return values + panel * valueBytes + step * kValueBytes;
  }
  const uint8_t *indicesAt(int64_t panel, int64_t step) const {
    return indices + panel * indexBytes + step * kLineBytes;
  }

  /// Writes `count` chunks from `step` on as `Format::Target` has them.
  void unpack(int64_t panel, int64_t step, int64_t count, float *to) const {
    for (int64_t i = 0; i < count; ++i)
      unpackChunk(panel, step + i, to + i * kChunkSteps * Format::kStepWords * kLanes);
  }

private:
  void unpackChunk(int64_t panel, int64_t step, float *to) const {
    const uint8_t *from = valuesAt(panel, step);
    auto words = loadAs<Words>(indicesAt(panel, step));
    for (int i = 0; i < kChunkSteps; ++i, from += Format::kBytes, words >>= kNextStep) {
      Format::unpack(Format::load(from, words), to + i * Format::kStepWords * kLanes);
      prefetchWeights(from);
    }
    prefetchWeights<kLinesOfIndices>(indicesAt(panel, step));
  }
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_FORMATS_H
