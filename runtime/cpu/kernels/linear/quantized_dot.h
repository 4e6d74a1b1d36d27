// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of unsigned weights and signed activations, four inputs of sixteen outputs at a time, exact on every ISA;
// the words of a row's activations are ROWS words apart. With VNNI an activation of 16 bits is two limbs of 8; without,
// every activation is one limb of 16.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_DOT_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_DOT_H

#include "../vector.h"
#include "columns.h"
#include "hone/cpu/packing/layout.h"

#include <immintrin.h>

namespace {

/// Four bytes of each output of a panel.
typedef uint16_t Line __attribute__((ext_vector_type(32)));
constexpr int64_t kLineBytes = sizeof(Line);

#if defined(__AVX512VNNI__)

using Limb = int8_t;
constexpr int kMostLimbs = 2;
constexpr int kQuantizedPanels = 2, kQuantizedSums = 24; // sums in registers: rows, panels and limbs

/// Codes of four inputs of sixteen outputs.
struct Quad {
  __m512i bytes;

  explicit Quad(Line codes) : bytes((__m512i)codes) {}

  template <int ROWS> void add(Integers &sum, const Limb *x) const {
    sum = (Integers)_mm512_dpbusd_epi32((__m512i)sum, bytes, _mm512_set1_epi32(loadAs<int32_t>(x)));
  }
};

#else

using Limb = int16_t;
constexpr int kMostLimbs = 1;

/// Even and odd inputs apart, 16 bits each; activations lie in the order 0 2 1 3.
struct Quad {
  Line even, odd;

  explicit Quad(Line codes) : even(codes & 0xff), odd(codes >> 8) {}

  template <int ROWS> void add(Integers &sum, const Limb *x) const {
    addProducts(sum, loadAs<int32_t>(x), loadAs<int32_t>(x + 2 * ROWS));
  }

private:
  void addProducts(Integers &sum, int32_t first, int32_t second) const;
};

#ifdef __AVX512BW__

constexpr int kQuantizedPanels = 2, kQuantizedSums = 20;

inline void Quad::addProducts(Integers &sum, int32_t first, int32_t second) const {
  sum += (Integers)_mm512_madd_epi16((__m512i)even, _mm512_set1_epi32(first));
  sum += (Integers)_mm512_madd_epi16((__m512i)odd, _mm512_set1_epi32(second));
}

#else

constexpr int kQuantizedPanels = 1, kQuantizedSums = 4;

inline void Quad::addProducts(Integers &sum, int32_t first, int32_t second) const {
  typedef int32_t Eight __attribute__((ext_vector_type(8)));
  __m256i x = _mm256_set1_epi32(first), y = _mm256_set1_epi32(second);
  Eight low = (Eight)_mm256_madd_epi16((__m256i)even.lo, x) + (Eight)_mm256_madd_epi16((__m256i)odd.lo, y);
  Eight high = (Eight)_mm256_madd_epi16((__m256i)even.hi, x) + (Eight)_mm256_madd_epi16((__m256i)odd.hi, y);
  sum += __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

#endif
#endif

/// Codes as they lie in panels. Loops over the quads of a step are to be unrolled: what a quad takes then is known.
template <const hone::cpu::BitLayout &LAYOUT> struct Codes {
  static constexpr int kInputs = LAYOUT.inputs(), kQuads = LAYOUT.quads, kLines = LAYOUT.lines, kZero = LAYOUT.middle();
  static constexpr int64_t kStepBytes = kLines * kLineBytes;

  /// Quad `q` of the step at `from`, each code in a byte.
  static Line quad(const uint8_t *from, int q) {
    Line codes = bitsOf(from, LAYOUT.parts[q][0]);
    if (LAYOUT.parts[q][1].bits > 0)
      codes |= bitsOf(from, LAYOUT.parts[q][1]);
    return codes;
  }

  static void prefetch(const uint8_t *from, int64_t panel = 0) {
    for (int line = 0; line < kLines; ++line)
      prefetchWeights(from + line * kLineBytes, panel);
  }
  static void prefetchCached(const uint8_t *from) {
    for (int line = 0; line < kLines; ++line)
      prefetchCachedWeights(from + line * kLineBytes);
  }

private:
  /// Shifts move bits from one byte to the next, where none of them are prefetched.
  static Line bitsOf(const uint8_t *from, const hone::cpu::BitField &part) {
    auto mask = static_cast<uint16_t>((((1 << part.bits) - 1) << part.to) * 0x0101);
    return (loadAs<Line>(from + part.line * kLineBytes) >> static_cast<uint16_t>(part.shift - part.to)) & mask;
  }
};

using U8Codes = Codes<hone::cpu::kU8Layout>;
using U4Codes = Codes<hone::cpu::kU4Layout>;
using U3Codes = Codes<hone::cpu::kU3Layout>;
using U2Codes = Codes<hone::cpu::kU2Layout>;

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_DOT_H
