// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of unsigned codes and signed activations, four inputs of sixteen outputs at a time, exact on every ISA. A limb is
// what the instruction takes of an activation; the words of a row's limbs are ROWS words apart:
//
//   ByteDot   VPDPBUSD      with VNNI               an activation of 16 bits is two limbs of 8 (AVX512-VNNI)
//   PairDot   VPMADDUBSW    without VNNI            activations of 8 bits and codes of up to 6: sums of 16 bits for some quads
//   WordDot   VPMADDWD      without AVX512-VNNI     one limb of 16; VPDPWSSD with AVX-VNNI

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_DOT_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_DOT_H

#include "packed_codes.h"

namespace {

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define HONE_HAS_BYTE_DOT
#endif

// Sums in registers: rows, panels and limbs.
#ifdef __AVX512BW__
constexpr int kDotPanels = 2, kByteSums = 24, kWordSums = 20;
#else
constexpr int kDotPanels = 1, kByteSums = 6, kWordSums = 4;

struct Halves {
  __m256i low, high;
};
inline Halves halvesOf(Integers sum) { return __builtin_bit_cast(Halves, sum); }
#endif

#ifdef HONE_HAS_BYTE_DOT

inline Integers addBytes(Integers sum, Line a, int32_t b) {
#ifdef __AVX512VNNI__
  return (Integers)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, _mm512_set1_epi32(b));
#else
  __m256i all = _mm256_set1_epi32(b);
  Halves halves = halvesOf(sum);
  return __builtin_bit_cast(Integers, Halves{_mm256_dpbusd_avx_epi32(halves.low, (__m256i)a.lo, all),
                                             _mm256_dpbusd_avx_epi32(halves.high, (__m256i)a.hi, all)});
#endif
}

struct ByteDot {
  using Limb = int8_t;
#ifdef __AVX512VNNI__
  static constexpr int kMostLimbs = 2;
#else
  static constexpr int kMostLimbs = 1; // two of one row and four panels would need all registers
#endif
  static constexpr int kPanels = kDotPanels, kSums = kByteSums;
  static constexpr int kPairQuads = 0; // sums have 32 bits from the start

  /// Codes of four inputs of sixteen outputs.
  struct Quad {
    Line bytes;

    Quad() = default;
    explicit Quad(Line codes) : bytes(codes) {}

    template <int ROWS> void add(Integers &sum, const Limb *x) const { sum = addBytes(sum, bytes, loadAs<int32_t>(x)); }
  };
};

#endif // HONE_HAS_BYTE_DOT

#ifndef __AVX512VNNI__

/// Products of words, summed by twos and added to `sum`; `b` is the same for all outputs.
inline Integers addWords(Integers sum, Line a, int32_t b) {
#if defined(__AVX512BW__)
  return sum + (Integers)_mm512_madd_epi16((__m512i)a, _mm512_set1_epi32(b));
#elif defined(__AVXVNNI__)
  __m256i all = _mm256_set1_epi32(b);
  Halves halves = halvesOf(sum);
  return __builtin_bit_cast(Integers, Halves{_mm256_dpwssd_avx_epi32(halves.low, (__m256i)a.lo, all),
                                             _mm256_dpwssd_avx_epi32(halves.high, (__m256i)a.hi, all)});
#else
  __m256i all = _mm256_set1_epi32(b);
  return sum + __builtin_bit_cast(Integers,
                                  Halves{_mm256_madd_epi16((__m256i)a.lo, all), _mm256_madd_epi16((__m256i)a.hi, all)});
#endif
}

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
      sum = addWords(sum, even, loadAs<int32_t>(x));
      sum = addWords(sum, odd, loadAs<int32_t>(x + 2 * ROWS));
    }
  };
};

#endif // __AVX512VNNI__

#ifndef HONE_HAS_BYTE_DOT

/// Sums of two products, two for each output.
typedef int16_t PairSums __attribute__((ext_vector_type(32)));

/// Products of bytes, summed by twos; `b` is the same for all outputs.
inline PairSums multiplyBytes(Line a, int32_t b) {
#ifdef __AVX512BW__
  return (PairSums)_mm512_maddubs_epi16((__m512i)a, _mm512_set1_epi32(b));
#else
  __m256i all = _mm256_set1_epi32(b);
  return __builtin_bit_cast(PairSums,
                            Halves{_mm256_maddubs_epi16((__m256i)a.lo, all), _mm256_maddubs_epi16((__m256i)a.hi, all)});
#endif
}

/// Of codes of `BITS` bits; a pair of products is below 2^(BITS + 8).
template <int BITS> struct PairDot {
  using Limb = int8_t;
  static constexpr int kMostLimbs = 1;
  static constexpr int kPanels = kDotPanels, kSums = kByteSums;
  static constexpr int kPairQuads = 1 << (7 - BITS); // whose sums of pairs are exact

  using Pairs = PairSums;
  static Integers sum(Pairs pairs) { return addWords(Integers(0), (Line)pairs, 0x00010001); }

  struct Quad {
    Line bytes;

    Quad() = default;
    explicit Quad(Line codes) : bytes(codes) {}

    template <int ROWS> void add(PairSums &sum, const Limb *x) const {
      sum += multiplyBytes(bytes, loadAs<int32_t>(x));
    }
  };
};

#endif // HONE_HAS_BYTE_DOT

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_DOT_H
