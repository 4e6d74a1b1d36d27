// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies kept elements to where pack_sparse.h says they are.

#include "cpu/packing/pack_sparse.h"

#include <algorithm>
#include <cstring>

namespace hone::cpu {
namespace {

constexpr int64_t kGroupInputs = 4, kGroupKept = 2, kIndexBytes = 4;

int64_t panelsOf(const LinearShape &shape) { return (shape.outputs + kPanelOutputs - 1) / kPanelOutputs; }

/// Words of indices that an output has.
int64_t wordsOf(const LinearShape &shape) { return (shape.inputs + kIndexInputs - 1) / kIndexInputs; }

int64_t elementBytesOf(PackedFormat format) { return format == PackedFormat::F32 ? 4 : 2; }

} // namespace

std::array<int64_t, 4> packedSparseShape(PackedFormat format, const LinearShape &shape) {
  int64_t steps = wordsOf(shape) * (kIndexInputs / kGroupInputs);
  if (format == PackedFormat::Bf16)
    return {panelsOf(shape), steps, kPanelOutputs, kGroupKept};
  return {panelsOf(shape), steps, kGroupKept, kPanelOutputs};
}

std::array<int64_t, 4> packedIndexShape(const LinearShape &shape) {
  return {panelsOf(shape), wordsOf(shape), kPanelOutputs, kIndexBytes};
}

KeptPlace placeOfKept(PackedFormat format, const LinearShape &shape, int64_t output, int64_t group, int64_t kept) {
  constexpr int64_t wordGroups = kIndexInputs / kGroupInputs;
  int64_t panel = output / kPanelOutputs, lane = output % kPanelOutputs;
  int64_t step = panel * wordsOf(shape) * wordGroups + group;
  int64_t word = (panel * wordsOf(shape) + group / wordGroups) * kPanelOutputs + lane;
  int64_t place = format == PackedFormat::Bf16 ? (step * kPanelOutputs + lane) * kGroupKept + kept
                                               : (step * kGroupKept + kept) * kPanelOutputs + lane;
  int64_t bit = 16 * kept + 2 * (group % wordGroups);
  return {place * elementBytesOf(format), word * kIndexBytes + bit / 8, bit % 8};
}

void packSparseLinear(PackedFormat format, const LinearShape &shape, const void *values, const uint8_t *indices,
                      std::span<uint8_t> packedValues, std::span<uint8_t> packedIndices) {
  std::ranges::fill(packedValues, 0);
  std::ranges::fill(packedIndices, 0);
  const auto *from = static_cast<const uint8_t *>(values);
  int64_t kept = shape.inputs / kGroupInputs * kGroupKept, bytes = elementBytesOf(format);
  for (int64_t n = 0; n < shape.outputs; ++n)
    for (int64_t e = 0; e < kept; ++e) {
      KeptPlace place = placeOfKept(format, shape, n, e / kGroupKept, e % kGroupKept);
      std::memcpy(packedValues.data() + place.value, from + (n * kept + e) * bytes, static_cast<size_t>(bytes));
      packedIndices[place.index] |= static_cast<uint8_t>((indices[n * kept + e] & 3) << place.indexShift);
    }
}

} // namespace hone::cpu
