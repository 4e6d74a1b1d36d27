// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How one step of a packed panel of floating-point weights multiplies with activations. A format says how many bytes a
// step has, how many words of 32 bits it takes of a row of activations, and what a word holds: one input as f32, or two
// as bf16.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_FORMATS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_FORMATS_H

#include "../bf16_pairs.h"
#include "../rows.h"
#include "../vector.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace {

// Sums of 16 floats in registers, which are two where registers have 256 bits: those of kDenseRows rows and
// kDensePanels panels, or of fewer rows and more panels.
#ifdef __AVX512F__
constexpr int kDenseSums = 28, kDensePanels = 2;
#else
constexpr int kDenseSums = 6, kDensePanels = 1;
#endif
constexpr int kDenseRows = kDenseSums / kDensePanels;

// Up to this number of rows weights are read once, as for one. Where registers hold the sums of fewer, blocks of rows take turns
// at slices of the inputs, short enough for the L1 cache.
#ifdef __AVX512F__
constexpr int kDenseGemvBlocks = 1;
#else
constexpr int kDenseGemvBlocks = 2;
#endif
constexpr int kDenseGemvRows = kDenseGemvBlocks * kDenseRows;
constexpr int64_t kDenseGemvSliceBytes = 4096;

/// Activations stay f32.
struct FloatActivations {
  static constexpr int kWordInputs = 1;
  static Vector words(const float *inputs) { return load(inputs); }
};

/// Inputs of several rows as words of each, from a vector of those rows for each input.
template <typename Format> Vector wordsOf(const Vector *inputs) {
#ifdef __AVX512BF16__
  if constexpr (Format::kWordInputs == 2)
    return pairsOfBf16(inputs[0], inputs[1]);
#endif
  return inputs[0];
}

/// `add` adds the products of a step with one row; `x` is the row's first word, words of a row are ROWS apart. `unpack`
/// writes the inputs of a step as f32, sixteen outputs each; formats that calculate with what they load have none.
struct F32Format : FloatActivations {
  static constexpr int kStepWords = 1, kBytes = 64;
  static constexpr bool kUnpacks = false;
  struct Weights {
    Vector values;
  };

  static Weights load(const uint8_t *from) { return {loadAs<Vector>(from)}; }
  template <int ROWS> static void add(Vector &sum, const Weights &weights, const float *x) {
    sum += x[0] * weights.values;
  }
};

struct F16Format : FloatActivations {
  static constexpr int kStepWords = 1, kBytes = 32;
  static constexpr bool kUnpacks = true;
  struct Weights {
    Vector values;
  };

  static Weights load(const uint8_t *from) { return {loadHalves(from)}; }
  template <int ROWS> static void add(Vector &sum, const Weights &weights, const float *x) {
    sum += x[0] * weights.values;
  }
  static void unpack(const uint8_t *from, float *to) { store(to, loadHalves(from)); }
};

/// A bf16 is the upper half of an f32: even inputs are shifted up, odd inputs masked. Activations stay f32.
struct WidenedBf16Format : FloatActivations {
  static constexpr int kStepWords = 2, kBytes = 64;
  static constexpr bool kUnpacks = true;
  struct Weights {
    Vector even, odd;
  };

  static Weights load(const uint8_t *from) {
    auto words = loadAs<Words>(from);
    return {asFloats(words << 16), asFloats(words & 0xffff0000u)};
  }
  template <int ROWS> static void add(Vector &sum, const Weights &weights, const float *x) {
    sum += x[0] * weights.even;
    sum += x[ROWS] * weights.odd;
  }
  static void unpack(const uint8_t *from, float *to) {
    Weights weights = load(from);
    store(to, weights.even);
    store(to + kLanes, weights.odd);
  }
};

#ifdef __AVX512BF16__
/// Activations are rounded to bf16; products are summed in f32.
struct Bf16Format {
  static constexpr int kWordInputs = 2, kStepWords = 1, kBytes = 64;
  static constexpr bool kUnpacks = false;
  struct Weights {
    __m512bh pairs;
  };

  /// Sixteen pairs of bf16, rounded to nearest, from 32 inputs.
  static Vector words(const float *inputs) {
    return (Vector)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(inputs + kLanes), _mm512_loadu_ps(inputs));
  }
  static Weights load(const uint8_t *from) { return {(__m512bh)_mm512_loadu_si512(from)}; }
  template <int ROWS> static void add(Vector &sum, const Weights &weights, const float *x) {
    sum = (Vector)_mm512_dpbf16_ps((__m512)sum, weights.pairs, (__m512bh)_mm512_set1_epi32(loadAs<int32_t>(x)));
  }
};
#else
using Bf16Format = WidenedBf16Format;
#endif

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_FORMATS_H
