// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies kept elements to where pack_sparse.h says they are.

#include "hone/cpu/packing/pack_sparse.h"

#include <algorithm>
#include <cstring>

namespace hone::cpu {
namespace {

constexpr int64_t kGroupInputs = 4, kGroupKept = 2, kIndexBytes = 4;

int64_t roundUp(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

bool isQuantized(PackedFormat format) { return bitLayoutOf(format) != nullptr; }

int64_t elementBytesOf(PackedFormat format) {
  return format == PackedFormat::F32 ? 4 : format == PackedFormat::F16 || format == PackedFormat::Bf16 ? 2 : 1;
}

/// Inputs whose kept elements share a step.
int64_t stepInputsOf(PackedFormat format) {
  return format == PackedFormat::U4 ? 16 : format == PackedFormat::U8 ? 8 : kGroupInputs;
}

int64_t panelsOf(const LinearShape &shape) { return roundUp(shape.outputs, kPanelOutputs) / kPanelOutputs; }

int64_t paddedInputs(PackedFormat format, const LinearShape &shape) {
  return roundUp(shape.inputs, isQuantized(format) ? std::max(kQuantizedInputs, shape.group) : kIndexInputs);
}

} // namespace

std::array<int64_t, 4> packedSparseShape(PackedFormat format, const LinearShape &shape) {
  int64_t steps = paddedInputs(format, shape) / stepInputsOf(format);
  if (isQuantized(format))
    return {panelsOf(shape), steps, kPanelOutputs, 4};
  if (format == PackedFormat::Bf16)
    return {panelsOf(shape), steps, kPanelOutputs, kGroupKept};
  return {panelsOf(shape), steps, kGroupKept, kPanelOutputs};
}

std::array<int64_t, 4> packedIndexShape(PackedFormat format, const LinearShape &shape) {
  return {panelsOf(shape), paddedInputs(format, shape) / kIndexInputs, kPanelOutputs, kIndexBytes};
}

KeptPlace placeOfKept(PackedFormat format, const LinearShape &shape, int64_t output, int64_t group, int64_t kept) {
  int64_t inputs = paddedInputs(format, shape), panel = output / kPanelOutputs, lane = output % kPanelOutputs;
  int64_t input = group * kGroupInputs, stepInputs = stepInputsOf(format);
  int64_t step = panel * (inputs / stepInputs) + input / stepInputs, bytes = elementBytesOf(format);
  int64_t word = (panel * (inputs / kIndexInputs) + input / kIndexInputs) * kPanelOutputs + lane;
  if (isQuantized(format)) {
    int64_t byte = group % 2 * kGroupKept + kept, eight = input % kIndexInputs / 8;
    bool isHigh = format == PackedFormat::U4 && eight % 2 != 0;
    return {(step * kPanelOutputs + lane) * 4 + byte, isHigh ? 4 : 0, word * kIndexBytes + byte, 2 * eight};
  }
  int64_t shift = 2 * (group % (kIndexInputs / kGroupInputs));
  int64_t place = format == PackedFormat::Bf16 ? (step * kPanelOutputs + lane) * kGroupKept + kept
                                               : (step * kGroupKept + kept) * kPanelOutputs + lane;
  return {place * bytes, 0, word * kIndexBytes + 2 * kept + shift / 8, shift % 8};
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
      const uint8_t *value = from + (n * kept + e) * bytes;
      if (format == PackedFormat::U4)
        packedValues[place.value] |= static_cast<uint8_t>((*value & 0xf) << place.valueShift);
      else
        std::memcpy(packedValues.data() + place.value, value, static_cast<size_t>(bytes));
      packedIndices[place.index] |= static_cast<uint8_t>((indices[n * kept + e] & 3) << place.indexShift);
    }
}

} // namespace hone::cpu
