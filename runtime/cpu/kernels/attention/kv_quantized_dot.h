// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exact products of codes of a cache with integers of sixteen bits, four codes of sixteen lanes at a time. With VNNI an
// integer is two limbs of 8 bits, without it one of 16.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_DOT_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_DOT_H

#include "kv_quantized_cache.h"

#include <immintrin.h>

namespace {

/// The largest integer that a query is rounded to: two signed limbs of 8 bits.
constexpr int32_t kMostQuery = 127 * 256 + 127;

/// Lanes of a dot: those of a register.
#ifdef __AVX512BW__
constexpr int kDotLanes = 16;
#else
constexpr int kDotLanes = 8;
#endif

typedef int32_t DotIntegers __attribute__((ext_vector_type(kDotLanes)));
typedef uint32_t DotWords __attribute__((ext_vector_type(kDotLanes)));
typedef float DotFloats __attribute__((ext_vector_type(kDotLanes)));

/// Two words that four integers are multiplied as, in sixteen lanes.
struct FactorWords {
  Words first, second;
};

inline Vector toFloats(Integers integers) { return __builtin_convertvector(integers, Vector); }
inline Words wordsOf(Integers integers) { return loadAs<Words>(&integers); }

/// Four codes a lane, each in a byte: part `half` of words of a line of a cache.
template <typename Cache, typename Lanes> Lanes bitLayoutOf(Lanes words, int half) {
  if constexpr (Cache::kPerByte == 1)
    return words;
  return (half == 0 ? words : words >> 4) & 0x0f0f0f0fu;
}

/// The lower halves of four integers, 0 and 2 in one word and 1 and 3 in another.
inline FactorWords pairHalves(const Words (&four)[4]) {
  constexpr uint32_t half = 0xffff;
  return {(four[0] & half) | four[2] << 16, (four[1] & half) | four[3] << 16};
}

/// Upper and lower bytes of the halves of such words, in their order.
inline FactorWords splitHalves(FactorWords pairs) {
  constexpr uint32_t low = 0x00ff00ff, high = 0xff00ff00;
  return {(pairs.first >> 8 & low) | (pairs.second & high), (pairs.first & low) | (pairs.second << 8 & high)};
}

/// What sums of products with upper and with lower limbs are together. They have 32 bits, as their terms are bounded.
inline Vector joinLimbs(Integers upper, Integers lower) { return toFloats((upper << 8) + lower); }

#ifdef __AVX512VNNI__

constexpr int kQuantizedKvSums = 14, kQuantizedKvRows = 12; // dots in registers, and rows that they may be of

/// The largest integer that a weight is rounded to, which leaves 16 bits without a sign room for rounding, and 256
/// products 32 bits.
constexpr float kMostWeight = 64000, kMostWeightLog2 = 15.9657843f;

/// Sums of products with upper and with lower limbs.
struct Dot {
  Integers upper, lower;

  Vector sum() const { return joinLimbs(upper, lower); }
};

/// Four integers of queries: limbs have signs, so that what the lower one has more is taken from the upper one.
inline FactorWords queryWords(const Integers (&four)[4]) {
  Words carried[4];
  for (int i = 0; i < 4; ++i)
    carried[i] = wordsOf(four[i] + ((four[i] & 0x80) << 1));
  return splitHalves(pairHalves(carried));
}
inline FactorWords weightWords(const Words (&four)[4]) { return splitHalves(pairHalves(four)); }

/// Products take one factor without a sign: codes of keys are counted from the least, and a dot begins with what that
/// adds.
template <typename Cache> class KeyCodes {
public:
  KeyCodes() = default;
  KeyCodes(DotWords line, int half) {
    DotWords codes = bitLayoutOf<Cache>(line, half);
    bytes = (__m512i)(Cache::kIsSigned ? codes ^ 0x80808080u : codes);
  }

  template <int COUNT>
  static void add(Dot (&dots)[COUNT], const KeyCodes (&codes)[COUNT], int32_t upper, int32_t lower) {
    __m512i factor = _mm512_set1_epi32(upper);
    for (int i = 0; i < COUNT; ++i)
      dots[i].upper = (Integers)_mm512_dpbusd_epi32((__m512i)dots[i].upper, codes[i].bytes, factor);
    factor = _mm512_set1_epi32(lower);
    for (int i = 0; i < COUNT; ++i)
      dots[i].lower = (Integers)_mm512_dpbusd_epi32((__m512i)dots[i].lower, codes[i].bytes, factor);
  }

  /// What a dot with integers whose limbs are `words` begins with.
  static void begin(Dot &start, int32_t upper, int32_t lower) {
    start.upper -= kLeast * sumBytes(upper);
    start.lower -= kLeast * sumBytes(lower);
  }

private:
  static constexpr int32_t kLeast = Cache::kIsSigned ? 128 : 0;

  static int32_t sumBytes(int32_t word) {
    return (word << 24 >> 24) + (word << 16 >> 24) + (word << 8 >> 24) + (word >> 24);
  }

  __m512i bytes;
};

template <typename Cache> class ValueCodes {
public:
  ValueCodes() = default;
  ValueCodes(DotWords line, int half) : bytes((__m512i)bitLayoutOf<Cache>(line, half)) {}

  template <int COUNT>
  static void add(Dot (&dots)[COUNT], const ValueCodes (&codes)[COUNT], int32_t upper, int32_t lower) {
    __m512i factor = _mm512_set1_epi32(upper);
    for (int i = 0; i < COUNT; ++i)
      dots[i].upper = (Integers)_mm512_dpbusd_epi32((__m512i)dots[i].upper, factor, codes[i].bytes);
    factor = _mm512_set1_epi32(lower);
    for (int i = 0; i < COUNT; ++i)
      dots[i].lower = (Integers)_mm512_dpbusd_epi32((__m512i)dots[i].lower, factor, codes[i].bytes);
  }

private:
  __m512i bytes;
};

#else

/// As above, with a sign.
constexpr float kMostWeight = 32000, kMostWeightLog2 = 14.9657843f;

struct Dot {
  DotIntegers all;

  DotFloats sum() const { return __builtin_convertvector(all, DotFloats); }
};

inline FactorWords queryWords(const Integers (&four)[4]) {
  return pairHalves({wordsOf(four[0]), wordsOf(four[1]), wordsOf(four[2]), wordsOf(four[3])});
}
inline FactorWords weightWords(const Words (&four)[4]) { return pairHalves(four); }

template <typename Cache> class KeyCodes {
public:
  KeyCodes() = default;
  KeyCodes(DotWords line, int half) {
    if constexpr (Cache::kIsSigned) {
      auto pairs = loadAs<Pairs>(&line);
      even = (pairs << 8) >> 8;
      odd = pairs >> 8;
    } else {
      auto pairs = loadAs<UnsignedPairs>(&line);
      even = (Pairs)((half == 0 ? pairs : pairs >> 4) & 0xf);
      odd = (Pairs)(half == 0 ? pairs >> 8 & 0xf : pairs >> 12);
    }
  }

  template <int COUNT>
  static void add(Dot (&dots)[COUNT], const KeyCodes (&codes)[COUNT], int32_t first, int32_t second) {
    for (int i = 0; i < COUNT; ++i)
      dots[i].all += multiply(codes[i].even, first) + multiply(codes[i].odd, second);
  }

  static void begin(Dot &, int32_t, int32_t) {}

private:
  typedef int16_t Pairs __attribute__((ext_vector_type(2 * kDotLanes)));
  typedef uint16_t UnsignedPairs __attribute__((ext_vector_type(2 * kDotLanes)));

  static DotIntegers multiply(Pairs pairs, int32_t word) {
#ifdef __AVX512BW__
    return (DotIntegers)_mm512_madd_epi16((__m512i)pairs, _mm512_set1_epi32(word));
#else
    return (DotIntegers)_mm256_madd_epi16((__m256i)pairs, _mm256_set1_epi32(word));
#endif
  }

  Pairs even, odd; // codes 0 and 2, and 1 and 3, sixteen bits each
};

template <typename Cache> using ValueCodes = KeyCodes<Cache>;

#ifdef __AVX512BW__
constexpr int kQuantizedKvSums = 16, kQuantizedKvRows = 12;
#else
constexpr int kQuantizedKvSums = 8, kQuantizedKvRows = 8;
#endif

#endif // __AVX512VNNI__

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_DOT_H
