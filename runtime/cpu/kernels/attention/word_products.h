// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What vectors multiply the words of a cache in blocks with: floats with elements that have become floats, or, where
// there are dot products of pairs of bf16, words of two rounded numbers with words as they lie, which is half the work.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_WORD_PRODUCTS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_WORD_PRODUCTS_H

#include "../scratch.h"
#include "kv_blocked_cache.h"
#include "row_block.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace {

/// Products of the elements of sixteen words with a row's kFactors factors of a word.
template <typename Cache> struct WordProducts {
  using Factor = float;
  using Numbers = Vector;
  static constexpr int kFactors = Cache::kBlockWord;

  static void read(const typename Cache::Element *from, Numbers (&numbers)[kFactors]) {
    BlockedCache<Cache>::readWords(from, numbers);
  }
  static void add(Vector &sum, Factor factor, Numbers numbers) { sum += factor * numbers; }

  /// Weights of the keys of a KV micro-block as factors.
  static void storeWeights(const Vector *weights, Factor *to) {
    for (int e = 0; e < kFactors; ++e)
      store(to + e * kLanes, weights[e]);
  }
};

/// The factors of the queries of a block of rows: here they are the queries.
template <typename Cache> class QueryFactors {
public:
  QueryFactors(int64_t, int64_t) {}

  void take(const RowBlock &of) {
    first = of.queries;
    rowStride = of.queryStride;
  }
  const float *data() const { return first; }
  int64_t stride() const { return rowStride; }

private:
  const float *first = nullptr;
  int64_t rowStride = 0;
};

#ifdef __AVX512BF16__

/// The nearest bf16 of sixteen numbers, of two the even one.
inline __m256bh roundToHalves(Vector numbers) { return _mm512_cvtneps_pbh((__m512)numbers); }

template <> struct WordProducts<Bf16Cache> {
  using Factor = uint32_t; // two bf16
  using Numbers = Words;
  static constexpr int kFactors = 1;

  static void read(const uint16_t *from, Numbers (&numbers)[kFactors]) { numbers[0] = loadAs<Words>(from); }
  static void add(Vector &sum, Factor factor, Numbers numbers) {
    Words factors = factor;
    sum = (Vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)factors, (__m512bh)numbers);
  }

  /// Rounded, each in the lower half of a word.
  static Words round(Vector numbers) {
    typedef uint16_t Halves __attribute__((ext_vector_type(16)));
    __m256bh rounded = roundToHalves(numbers);
    return __builtin_convertvector(loadAs<Halves>(&rounded), Words);
  }
  static void storeWeights(const Vector *weights, Factor *to) {
    Words pairs = round(weights[0]) | round(weights[1]) << 16;
    __builtin_memcpy(to, &pairs, sizeof pairs);
  }
};

template <> class QueryFactors<Bf16Cache> {
public:
  QueryFactors(int64_t mostRows, int64_t width) : words(toLanes(width) / 2), memory(mostRows * words) {}

  void take(const RowBlock &of) {
    for (int64_t r = 0; r < of.count; ++r)
      for (int64_t word = 0; word < words; word += kLanes / 2)
        takeSixteen(of.queries + r * of.queryStride + 2 * word, memory.data() + r * words + word);
  }
  const uint32_t *data() const { return memory.data(); }
  int64_t stride() const { return words; }

private:
  static void takeSixteen(const float *from, uint32_t *to) {
    __m256bh rounded = roundToHalves(load(from));
    __builtin_memcpy(to, &rounded, sizeof rounded);
  }

  int64_t words; // of a row
  Scratch<uint32_t> memory;
};

#endif // __AVX512BF16__

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_WORD_PRODUCTS_H
