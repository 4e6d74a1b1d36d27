// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of 8 and 4 bits of which two of every four inputs are kept, and how they become dense: what is not kept gets the level of
// the zero point, which means 0. packing/pack_sparse.h has the layout.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_LEVELS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_LEVELS_H

#include "columns.h"
#include "quantized_dot.h"
#include "quantized_weight.h"

namespace {

/// Inputs of a line of indices, and of the part of it that two bits of each byte are for.
constexpr int64_t kIndexInputs = 32, kEightInputs = 8, kIndexEights = kIndexInputs / kEightInputs;

/// A line of values has the kept elements of kEights times eight inputs, four bytes an output each.
struct SparseU8 {
  static constexpr int kEights = 1, kZero = U8Levels::kZero;
  static void load(const uint8_t *from, Words *eights) { eights[0] = loadAs<Words>(from); }
};

struct SparseU4 {
  static constexpr int kEights = 2, kZero = U4Levels::kZero;
  static void load(const uint8_t *from, Words *eights) {
    auto bytes = loadAs<Words>(from);
    eights[0] = bytes & 0x0f0f0f0f;
    eights[1] = (bytes >> 4) & 0x0f0f0f0f;
  }
};

/// Unpacked levels lie as bytes do; where no zero points are stored, they are those of the packed ones.
template <typename Packed> struct UnpackedLevels : U8Levels {
  static constexpr int kZero = Packed::kZero;
};

/// The operands of such a weight. Unpacked, a step is a line of four inputs, as UnpackedLevels has it.
template <typename Levels> struct SparseLevelWeight {
  static constexpr bool kIsUnpacked = true;
  static constexpr int64_t kLines = kIndexEights / Levels::kEights; // of values for a line of indices
  static constexpr int64_t kIndexSteps = kIndexInputs / 4;
  static constexpr int64_t kIndexPrefetch = kWeightPrefetch / kLines;

  const uint8_t *values, *indices;
  int64_t panels, indexLines, lines, group; // lines as unpacked
  WeightScales scales;

  /// `operands` are values, indices, scales and zeros.
  SparseLevelWeight(const hone_tensor *operands, int64_t group)
      : values(static_cast<const uint8_t *>(operands[0].data)), indices(static_cast<const uint8_t *>(operands[1].data)),
        panels(operands[1].sizes[0]), indexLines(operands[1].sizes[1]), lines(indexLines * kIndexSteps), group(group),
        scales(QuantizedWeight(operands[0], operands[2], operands[3], group).scales) {}

  const uint8_t *valuesAt(int64_t panel, int64_t line) const {
    return values + (panel * indexLines + line) * kLines * kLineBytes;
  }
  const uint8_t *indicesAt(int64_t panel, int64_t line) const {
    return indices + (panel * indexLines + line) * kLineBytes;
  }
  int64_t groupOf(int64_t line) const { return group > 0 ? line * kIndexInputs / group : 0; }

  /// The quads of four inputs each that a line of indices is for; `zero` is the level of the zero point of each output.
  void unpackLine(int64_t panel, int64_t line, Words zero, Words *quads) const {
    const uint8_t *from = valuesAt(panel, line);
    auto index = loadAs<Words>(indicesAt(panel, line));
    Words dropped = zero * 0x01010101u;
    for (int64_t i = 0; i < kLines; ++i, from += kLineBytes) {
      Words eights[Levels::kEights];
      Levels::load(from, eights);
      prefetchAhead(from, kWeightPrefetch);
      for (int e = 0; e < Levels::kEights; ++e, index >>= 2)
        for (uint32_t half = 0; half < 32; half += 16)
          *quads++ = dropped ^ place(eights[e], index, half, zero) ^ place(eights[e], index, half + 8, zero);
    }
    prefetchAhead(indicesAt(panel, line), kIndexPrefetch);
  }

  /// Writes `some` steps from `step` on, both multiples of those of a line of indices.
  void unpack(int64_t panel, int64_t step, int64_t some, uint8_t *to) const {
    for (int64_t line = step / kIndexSteps; line < (step + some) / kIndexSteps;
         ++line, to += kIndexSteps * kLineBytes) {
      Words quads[kIndexSteps];
      unpackLine(panel, line, zeroOf(panel, line), quads);
      __builtin_memcpy(to, quads, sizeof quads);
    }
  }

  Words zeroOf(int64_t panel, int64_t line) const {
    return __builtin_convertvector(scales.zero(groupOf(line), panel, Levels::kZero), Words);
  }

private:
  /// The byte at bit `at` of each word, where its index says it is: as what differs there from the zero point.
  static Words place(Words bytes, Words index, uint32_t at, Words zero) {
    Words byte = ((bytes >> at) & 0xff) ^ zero, shift = ((index >> at) & 3) * 8;
    return byte << shift;
  }
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_LEVELS_H
