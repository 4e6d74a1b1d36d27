// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of unsigned weights and signed activations, four inputs of sixteen outputs at a time, exact on every level; the words
// of a row's activations are ROWS words apart.
// With VNNI an activation of 16 bits is two digits of 8; without, every activation is one digit of 16.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_DOT_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_DOT_H

#include "../vector.h"

#include <immintrin.h>

namespace {

#if defined(__AVX512VNNI__)

using Digit = int8_t;
constexpr int kMostDigits = 2;
constexpr int kQuantizedPanels = 2, kQuantizedSums = 24; // sums in registers: rows, panels and digits

/// Levels of four inputs of sixteen outputs.
struct Quad {
  __m512i bytes;

  static Quad of(__m512i bytes) { return {bytes}; }
  template <int ROWS> void add(Integers &sum, const Digit *x) const {
    sum = (Integers)_mm512_dpbusd_epi32((__m512i)sum, bytes, _mm512_set1_epi32(loadAs<int32_t>(x)));
  }
};

#elif defined(__AVX512BW__)

using Digit = int16_t;
constexpr int kMostDigits = 1;
constexpr int kQuantizedPanels = 2, kQuantizedSums = 20;

/// Even and odd inputs apart, 16 bits each; activations lie in the order 0 2 1 3.
struct Quad {
  __m512i even, odd;

  static Quad of(__m512i bytes) {
    return {_mm512_and_si512(bytes, _mm512_set1_epi16(0xff)), _mm512_srli_epi16(bytes, 8)};
  }
  template <int ROWS> void add(Integers &sum, const Digit *x) const {
    sum += (Integers)_mm512_madd_epi16(even, _mm512_set1_epi32(loadAs<int32_t>(x)));
    sum += (Integers)_mm512_madd_epi16(odd, _mm512_set1_epi32(loadAs<int32_t>(x + 2 * ROWS)));
  }
};

#else

using Digit = int16_t;
constexpr int kMostDigits = 1;
constexpr int kQuantizedPanels = 1, kQuantizedSums = 4;

/// Even and odd inputs apart, 16 bits each, in two halves of eight outputs; activations lie in the order 0 2 1 3.
struct Quad {
  __m256i even[2], odd[2];

  static Quad of(const __m256i *bytes) {
    __m256i low = _mm256_set1_epi16(0xff);
    return {{_mm256_and_si256(bytes[0], low), _mm256_and_si256(bytes[1], low)},
            {_mm256_srli_epi16(bytes[0], 8), _mm256_srli_epi16(bytes[1], 8)}};
  }
  template <int ROWS> void add(Integers &sum, const Digit *x) const {
    typedef int32_t Eight __attribute__((ext_vector_type(8)));
    __m256i first = _mm256_set1_epi32(loadAs<int32_t>(x)), second = _mm256_set1_epi32(loadAs<int32_t>(x + 2 * ROWS));
    Eight low = (Eight)_mm256_madd_epi16(even[0], first) + (Eight)_mm256_madd_epi16(odd[0], second);
    Eight high = (Eight)_mm256_madd_epi16(even[1], first) + (Eight)_mm256_madd_epi16(odd[1], second);
    sum += __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
};

#endif

#ifdef __AVX512F__

/// A step of a panel of bytes: one quad.
struct U8Levels {
  static constexpr int kInputs = 4, kQuads = 1, kZero = 128;

  static void load(const uint8_t *from, Quad *quads) { quads[0] = Quad::of(_mm512_loadu_si512(from)); }
};

/// A step of a panel of nibbles: the quad of the low nibbles, then that of the high ones.
struct U4Levels {
  static constexpr int kInputs = 8, kQuads = 2, kZero = 8;

  static void load(const uint8_t *from, Quad *quads) {
    __m512i bytes = _mm512_loadu_si512(from), low = _mm512_set1_epi8(0xf);
    quads[0] = Quad::of(_mm512_and_si512(bytes, low));
    quads[1] = Quad::of(_mm512_and_si512(_mm512_srli_epi16(bytes, 4), low));
  }
};

#else

struct U8Levels {
  static constexpr int kInputs = 4, kQuads = 1, kZero = 128;

  static void load(const uint8_t *from, Quad *quads) {
    __m256i bytes[2] = {_mm256_loadu_si256((const __m256i *)from), _mm256_loadu_si256((const __m256i *)(from + 32))};
    quads[0] = Quad::of(bytes);
  }
};

struct U4Levels {
  static constexpr int kInputs = 8, kQuads = 2, kZero = 8;

  static void load(const uint8_t *from, Quad *quads) {
    __m256i low = _mm256_set1_epi8(0xf), first[2], second[2];
    for (int half = 0; half < 2; ++half) {
      __m256i bytes = _mm256_loadu_si256((const __m256i *)(from + 32 * half));
      first[half] = _mm256_and_si256(bytes, low);
      second[half] = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low);
    }
    quads[0] = Quad::of(first);
    quads[1] = Quad::of(second);
  }
};

#endif

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_DOT_H
