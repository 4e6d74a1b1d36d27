// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How one step of a packed panel of floating-point weights multiplies with an activation. A format says how many inputs
// and bytes a step has, what activations are stored as, and how many rows the registers hold the sums of.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_FORMATS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_FORMATS_H

#include "../rows.h"
#include "../vector.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace {

/// Rounds to the nearest bf16, to even where two are equally near; NaN stays NaN.
inline uint16_t toBf16(float value) {
  auto bits = loadAs<uint32_t>(&value);
  uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(value == value ? rounded : (bits >> 16 | 0x40));
}

// Registers: a row has kPanels sums of 16 floats, which are two registers where registers have 256 bits.
#ifdef __AVX512F__
constexpr int kDensePanels = 2, kDenseRows = 14;
#else
constexpr int kDensePanels = 1, kDenseRows = 6;
#endif

struct F32Format {
  using Activation = float;
  static constexpr int kInputs = 1, kBytes = 64;
  struct Weights {
    Vector values;
  };

  static float convert(float x) { return x; }
  static Weights load(const uint8_t *from) { return {loadAs<Vector>(from)}; }
  static void add(Vector &sum, const Weights &weights, const float *x) { sum += x[0] * weights.values; }
};

struct F16Format {
  using Activation = float;
  static constexpr int kInputs = 1, kBytes = 32;
  struct Weights {
    Vector values;
  };

  static float convert(float x) { return x; }
  static Weights load(const uint8_t *from) { return {loadHalves(from)}; }
  static void add(Vector &sum, const Weights &weights, const float *x) { sum += x[0] * weights.values; }
};

#ifdef __AVX512BF16__
/// Activations are rounded to bf16; products are summed in f32.
struct Bf16Format {
  using Activation = uint16_t;
  static constexpr int kInputs = 2, kBytes = 64;
  struct Weights {
    __m512bh pairs;
  };

  static uint16_t convert(float x) { return toBf16(x); }
  static Weights load(const uint8_t *from) { return {(__m512bh)_mm512_loadu_si512(from)}; }
  static void add(Vector &sum, const Weights &weights, const uint16_t *x) {
    sum = (Vector)_mm512_dpbf16_ps((__m512)sum, weights.pairs, (__m512bh)_mm512_set1_epi32(loadAs<int32_t>(x)));
  }
};
#else
/// A bf16 is the upper half of an f32: even inputs are shifted up, odd inputs masked.
struct Bf16Format {
  using Activation = float;
  static constexpr int kInputs = 2, kBytes = 64;
  struct Weights {
    Vector even, odd;
  };

  static float convert(float x) { return x; }
  static Weights load(const uint8_t *from) {
    auto words = loadAs<Words>(from);
    return {asFloats(words << 16), asFloats(words & 0xffff0000u)};
  }
  static void add(Vector &sum, const Weights &weights, const float *x) {
    sum += x[0] * weights.even;
    sum += x[1] * weights.odd;
  }
};
#endif

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_FORMATS_H
