// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of unsigned codes and signed activations, four inputs of sixteen outputs at a time, exact on every ISA. A limb is
// what the instruction takes of an activation; the words of a row's limbs are ROWS words apart:
//
//   ByteDot   VPDPBUSD      with VNNI       an activation of 16 bits is two limbs of 8
//   PairDot   VPMADDUBSW    without VNNI    activations of 8 bits and codes of up to 6: sums of 16 bits for some quads
//   WordDot   VPMADDWD      without VNNI    one limb of 16

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

struct ByteDot {
  using Limb = int8_t;
  static constexpr int kMostLimbs = 2;
  static constexpr int kPanels = 2, kSums = 24; // sums in registers: rows, panels and limbs
  static constexpr int kPairQuads = 0;          // sums have 32 bits from the start

  /// Codes of four inputs of sixteen outputs.
  struct Quad {
    __m512i bytes;

    Quad() = default;
    explicit Quad(Line codes) : bytes((__m512i)codes) {}

    template <int ROWS> void add(Integers &sum, const Limb *x) const {
      sum = (Integers)_mm512_dpbusd_epi32((__m512i)sum, bytes, _mm512_set1_epi32(loadAs<int32_t>(x)));
    }
  };
};

#else

/// Sums of two products, two for each output.
typedef int16_t PairSums __attribute__((ext_vector_type(32)));

/// Products of words, or of bytes, summed by twos; `b` is the same for all outputs.
#ifdef __AVX512BW__
constexpr int kDotPanels = 2, kWordSums = 20, kPairSums = 24; // sums in registers: rows and panels

inline Integers multiplyWords(Line a, int32_t b) {
  return (Integers)_mm512_madd_epi16((__m512i)a, _mm512_set1_epi32(b));
}
inline PairSums multiplyBytes(Line a, int32_t b) {
  return (PairSums)_mm512_maddubs_epi16((__m512i)a, _mm512_set1_epi32(b));
}
#else
constexpr int kDotPanels = 1, kWordSums = 4, kPairSums = 6;

struct Halves {
  __m256i low, high;
};
inline Integers multiplyWords(Line a, int32_t b) {
  __m256i all = _mm256_set1_epi32(b);
  return __builtin_bit_cast(Integers,
                            Halves{_mm256_madd_epi16((__m256i)a.lo, all), _mm256_madd_epi16((__m256i)a.hi, all)});
}
inline PairSums multiplyBytes(Line a, int32_t b) {
  __m256i all = _mm256_set1_epi32(b);
  return __builtin_bit_cast(PairSums,
                            Halves{_mm256_maddubs_epi16((__m256i)a.lo, all), _mm256_maddubs_epi16((__m256i)a.hi, all)});
}
#endif

struct WordDot {
  using Limb = int16_t;
  static constexpr int kMostLimbs = 1;
  static constexpr int kPanels = kDotPanels, kSums = kWordSums;
  static constexpr int kPairQuads = 0;

  /// Even and odd inputs apart, 16 bits each; activations lie in the order 0 2 1 3.
  struct Quad {
    Line even, odd;

    Quad() = default;
    explicit Quad(Line codes) : even(codes & 0xff), odd(codes >> 8) {}

    template <int ROWS> void add(Integers &sum, const Limb *x) const {
      sum += multiplyWords(even, loadAs<int32_t>(x));
      sum += multiplyWords(odd, loadAs<int32_t>(x + 2 * ROWS));
    }
  };
};

/// Of codes of `BITS` bits; a pair of products is below 2^(BITS + 8).
template <int BITS> struct PairDot {
  using Limb = int8_t;
  static constexpr int kMostLimbs = 1;
  static constexpr int kPanels = kDotPanels, kSums = kPairSums;
  static constexpr int kPairQuads = 1 << (7 - BITS); // whose sums of pairs are exact

  using Pairs = PairSums;
  static Integers sum(Pairs pairs) { return multiplyWords((Line)pairs, 0x00010001); }

  struct Quad {
    Line bytes;

    Quad() = default;
    explicit Quad(Line codes) : bytes(codes) {}

    template <int ROWS> void add(PairSums &sum, const Limb *x) const {
      sum += multiplyBytes(bytes, loadAs<int32_t>(x));
    }
  };
};

#endif

/// Codes of `BITS` bits as they lie in panels. Loops over the quads of a step are to be unrolled: what a quad takes then is known.
template <const hone::cpu::BitLayout &LAYOUT, int BITS = LAYOUT.bits> struct Codes {
  static constexpr int kBits = BITS, kZero = 1 << (BITS - 1);
  static constexpr int kInputs = LAYOUT.inputs(), kQuads = LAYOUT.quads, kLines = LAYOUT.lines;
  static constexpr int64_t kStepBytes = kLines * kLineBytes;

  /// Quad `q` of the step at `from`, each code in a byte.
  static Line quad(const uint8_t *from, int q) {
    Line codes = bitsOf(from, LAYOUT.parts[q][0]);
    for (int field = 1; field < hone::cpu::kMostFields && LAYOUT.parts[q][field].bits > 0; ++field)
      codes |= bitsOf(from, LAYOUT.parts[q][field]);
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
using U6Codes = Codes<hone::cpu::kU6Layout>;
using U5Codes = Codes<hone::cpu::kU5Layout>;
using U4Codes = Codes<hone::cpu::kU4Layout>;
using U3Codes = Codes<hone::cpu::kU3Layout>;
using U2Codes = Codes<hone::cpu::kU2Layout>;

/// Codes of `BITS` bits, each in a byte, as they are unpacked in the cache.
template <int BITS> struct ByteCodes : Codes<hone::cpu::kU8Layout, BITS> {
  static void prefetch(const uint8_t *, int64_t = 0) {}
  static void prefetchCached(const uint8_t *) {}
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_DOT_H
