// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of indices into a table of each output, looked up: packing/pack_codebook.h has the layout. 64 indices of a
// quarter of a panel take a shift, a mask, two look-ups and two interleavings, and are pairs of bf16 then, eight inputs
// of four outputs a register.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_CODEBOOK_WEIGHT_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_CODEBOOK_WEIGHT_H

#include "dense_formats.h"
#include "outliers.h"
#include "packed_codes.h"

namespace {

/// Quarters of a panel, and halves of the inputs of a step: sixteens are numbered 2 · quarter + half.
constexpr int kQuarters = 4, kHalves = 2;

// Each sixteen bytes of a line by themselves.
#ifdef __AVX512BW__
inline Words lookUp(Words table, Words indices) { return (Words)_mm512_shuffle_epi8((__m512i)table, (__m512i)indices); }
inline void interleaveBytes(Words even, Words odd, Words (&to)[2]) {
  to[0] = (Words)_mm512_unpacklo_epi8((__m512i)even, (__m512i)odd);
  to[1] = (Words)_mm512_unpackhi_epi8((__m512i)even, (__m512i)odd);
}
#else
typedef uint32_t HalfWords __attribute__((ext_vector_type(8)));

inline Words concatenated(__m256i low, __m256i high) {
  return __builtin_shufflevector((HalfWords)low, (HalfWords)high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
inline Words lookUp(Words table, Words indices) {
  return concatenated(_mm256_shuffle_epi8((__m256i)table.lo, (__m256i)indices.lo),
                      _mm256_shuffle_epi8((__m256i)table.hi, (__m256i)indices.hi));
}
inline void interleaveBytes(Words even, Words odd, Words (&to)[2]) {
  to[0] = concatenated(_mm256_unpacklo_epi8((__m256i)even.lo, (__m256i)odd.lo),
                       _mm256_unpacklo_epi8((__m256i)even.hi, (__m256i)odd.hi));
  to[1] = concatenated(_mm256_unpackhi_epi8((__m256i)even.lo, (__m256i)odd.lo),
                       _mm256_unpackhi_epi8((__m256i)even.hi, (__m256i)odd.hi));
}
#endif

/// Words 4 r + i of register q become words 4 r + q of register i.
template <typename Register> void transposeQuads(Register (&of)[kQuarters]) {
  auto low = [](Register a, Register b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
  };
  auto high = [](Register a, Register b) {
    return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  };
  auto lowPairs = [](Register a, Register b) {
    return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  };
  auto highPairs = [](Register a, Register b) {
    return __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  };
  Register first = low(of[0], of[1]), second = low(of[2], of[3]), third = high(of[0], of[1]),
           fourth = high(of[2], of[3]);
  of[0] = lowPairs(first, second);
  of[1] = highPairs(first, second);
  of[2] = lowPairs(third, fourth);
  of[3] = highPairs(third, fourth);
}

/// The table of a quarter.
template <typename Indices> struct QuarterTable {
  static constexpr bool kIsOne = Indices::kZero < 8; // register, of 2 and 3 bits
  static constexpr int64_t kBytes = (kIsOne ? 1 : 2) * kLineBytes;

  Words low, high;

  explicit QuarterTable(const uint8_t *from)
      : low(loadAs<Words>(from)), high(kIsOne ? low : loadAs<Words>(from + kLineBytes)) {}

  /// Pairs of bf16 of sixteen inputs: word 4 r + i of register j is that of inputs 8 j + 2 i, 8 j + 2 i + 1 of output
  /// r.
  void look(Words indices, Words (&pairs)[2]) const {
    Words others = kIsOne ? indices | 0x08080808u : indices;
    interleaveBytes(lookUp(low, indices), lookUp(high, others), pairs);
  }
};

#ifdef __AVX512BF16__
using LookedUpFormat = Bf16Format;
#else
using LookedUpFormat = F32Format;
#endif

/// The operands of a weight whose indices lie as `Indices` has them, and its outliers.
template <typename Indices, typename TARGET = LookedUpFormat> struct CodebookWeight {
  using Target = TARGET; // what a step is unpacked to
  static constexpr int64_t kStepInputs = 32, kTargetSteps = kStepInputs / Target::kWordInputs;
  static constexpr bool kIsUnpacked = true;
  static constexpr int64_t kStepBytes = kQuarters * kHalves / Indices::kQuads * Indices::kStepBytes;
  static constexpr int64_t kTableBytes = kQuarters * QuarterTable<Indices>::kBytes;

  const uint8_t *indices, *tables;
  int64_t indexBytes, tableBytes; // from panel to panel
  int64_t panels, steps;
  Outliers outliers;

  /// The same planes, to be unpacked to another format.
  template <typename Other>
  explicit CodebookWeight(const CodebookWeight<Indices, Other> &other)
      : indices(other.indices), tables(other.tables), indexBytes(other.indexBytes), tableBytes(other.tableBytes),
        panels(other.panels), steps(other.steps), outliers(other.outliers) {}

  CodebookWeight(const hone_tensor &indices, const hone_tensor &tables, const Outliers &outliers)
      : indices(static_cast<const uint8_t *>(indices.data)), tables(static_cast<const uint8_t *>(tables.data)),
        indexBytes(panelBytesOf(indices)), tableBytes(panelBytesOf(tables)), panels(indices.sizes[0]),
        steps(indices.sizes[1] * kLineBytes / kStepBytes), outliers(outliers) {}

  const uint8_t *at(int64_t panel, int64_t step) const { return indices + panel * indexBytes + step * kStepBytes; }
  const uint8_t *tablesOf(int64_t panel) const { return tables + panel * tableBytes; }

  /// The pairs of sixteen `number` of the step at `from`.
  static void look(const uint8_t *from, const uint8_t *tables, int number, Words (&pairs)[2]) {
    Line some = Indices::quad(from + number / Indices::kQuads * Indices::kStepBytes, number % Indices::kQuads);
    QuarterTable<Indices>(tables + number / kHalves * QuarterTable<Indices>::kBytes).look((Words)some, pairs);
  }

  /// Prefetches the lines that are needed later.
  static void prefetch(const uint8_t *from, int64_t panel = 0) {
    for (int64_t line = 0; line < kStepBytes; line += kLineBytes)
      prefetchWeights(from + line, panel);
  }

  /// Writes `count` steps from `step` on as `Target` has them, outliers included. Of pairs of bf16 each is a tile.
  void unpack(int64_t panel, int64_t step, int64_t count, float *to) const {
    for (int64_t i = 0; i < count; ++i)
      unpackStep(panel, step + i, to + i * kTargetSteps * kLanes);
    if (outliers.count > 0)
      outliers.takeWithin(panel, step * kStepInputs, count * kStepInputs,
                          [to](int64_t input, int64_t output, _Float16 outlier) {
                            addTo(to, input, output, static_cast<float>(outlier));
                          });
  }

private:
  void unpackStep(int64_t panel, int64_t step, float *to) const {
    const uint8_t *from = at(panel, step);
    prefetch(from);
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      Words pairs[kQuarters][2], some[kQuarters];
#pragma unroll
      for (int quarter = 0; quarter < kQuarters; ++quarter)
        look(from, tablesOf(panel), kHalves * quarter + half, pairs[quarter]);
      for (int part = 0; part < 2; ++part) {
        for (int quarter = 0; quarter < kQuarters; ++quarter)
          some[quarter] = pairs[quarter][part];
        transposeQuads(some);
        for (int i = 0; i < kQuarters; ++i)
          storePair(to, half * 8 + part * kQuarters + i, some[i]);
      }
    }
  }

  static void storePair(float *to, int64_t pair, Words values) {
    if constexpr (Target::kWordInputs == 2) {
      store(to + pair * kLanes, asFloats(values));
    } else {
      store(to + 2 * pair * kLanes, asFloats(values << 16));
      store(to + (2 * pair + 1) * kLanes, asFloats(values & 0xffff0000u));
    }
  }

  static void addTo(float *to, int64_t input, int64_t output, float value) {
    if constexpr (Target::kWordInputs == 2) {
      auto *at = reinterpret_cast<uint16_t *>(to) + (input / 2 * kLanes + output) * 2 + input % 2;
      uint32_t bits = static_cast<uint32_t>(loadAs<uint16_t>(at)) << 16;
      auto sum = static_cast<__bf16>(loadAs<float>(&bits) + value);
      __builtin_memcpy(at, &sum, sizeof sum);
    } else {
      to[input * kLanes + output] += value;
    }
  }
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_CODEBOOK_WEIGHT_H
