// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies indices and tables to where pack_codebook.h says they are.

#include "hone/cpu/packing/pack_codebook.h"

#include <algorithm>

namespace hone::cpu {
namespace {

int64_t divideUp(int64_t size, int64_t by) { return (size + by - 1) / by; }
int64_t panelsOf(const LinearShape &shape) { return divideUp(shape.outputs, kPanelOutputs); }
int64_t stepsOf(const LinearShape &shape) { return divideUp(shape.inputs, kCodebookInputs); }

constexpr int64_t kLineBytes = kQuarterOutputs * kTableBytes;

/// The lines of an index, and which part of them it is.
struct IndexPlace {
  int64_t firstByte; // of the output, in the first of the lines
  const BitField (&parts)[kMostFields];

  IndexPlace(const BitLayout &layout, const LinearShape &shape, int64_t output, int64_t input)
      : IndexPlace(layout, output / kPanelOutputs * stepsOf(shape) + input / kCodebookInputs,
                   2 * (output % kQuarterOutputs) + input % kCodebookInputs / kTableBytes,
                   output % kPanelOutputs / kQuarterOutputs * kTableBytes + input % kTableBytes) {}

  int64_t byteOf(const BitField &part) const { return firstByte + part.line * kLineBytes; }

private:
  IndexPlace(const BitLayout &layout, int64_t step, int64_t sixteen, int64_t byte)
      : firstByte((step * indexLinesOf(layout) + sixteen / layout.quads * layout.lines) * kLineBytes + byte),
        parts(layout.parts[sixteen % layout.quads]) {}
};

/// Where the low byte of a number is, and how far after it the high one.
struct NumberPlace {
  int64_t low, distance;

  NumberPlace(const BitLayout &layout, int64_t output, int64_t index)
      : low(((output / kPanelOutputs * kQuarterOutputs + output % kQuarterOutputs) * tableRegistersOf(layout) *
                 kQuarterOutputs +
             output % kPanelOutputs / kQuarterOutputs) *
                kTableBytes +
            index),
        distance(tableRegistersOf(layout) == 1 ? kTableBytes / 2 : kLineBytes) {}
};

} // namespace

std::array<int64_t, 4> packedIndexPlane(int64_t bits, const LinearShape &shape) {
  return {panelsOf(shape), stepsOf(shape) * indexLinesOf(indexLayoutOf(bits)), kQuarterOutputs, kTableBytes};
}

std::array<int64_t, 4> packedTablePlane(int64_t bits, const LinearShape &shape) {
  return {panelsOf(shape), kQuarterOutputs * tableRegistersOf(indexLayoutOf(bits)), kQuarterOutputs, kTableBytes};
}

void packCodebookIndices(int64_t bits, const LinearShape &shape, const uint8_t *indices, std::span<uint8_t> packed) {
  std::ranges::fill(packed, 0);
  for (int64_t n = 0; n < shape.outputs; ++n)
    for (int64_t k = 0; k < shape.inputs; ++k) {
      IndexPlace place(indexLayoutOf(bits), shape, n, k);
      for (const BitField &part : place.parts) {
        int32_t some = indices[n * shape.inputs + k] >> part.to & ((1 << part.bits) - 1);
        packed[place.byteOf(part)] |= static_cast<uint8_t>(some << part.shift);
      }
    }
}

void packCodebookTables(int64_t bits, const LinearShape &shape, const uint16_t *numbers, std::span<uint8_t> packed) {
  std::ranges::fill(packed, 0);
  for (int64_t n = 0; n < shape.outputs; ++n)
    for (int64_t index = 0; index < int64_t(1) << bits; ++index) {
      NumberPlace place(indexLayoutOf(bits), n, index);
      uint16_t number = numbers[(n << bits) + index];
      packed[place.low] = static_cast<uint8_t>(number);
      packed[place.low + place.distance] = static_cast<uint8_t>(number >> 8);
    }
}

uint16_t loadCodebookNumber(int64_t bits, const LinearShape &shape, std::span<const uint8_t> indices,
                            std::span<const uint8_t> tables, int64_t output, int64_t input) {
  IndexPlace at(indexLayoutOf(bits), shape, output, input);
  int32_t index = 0;
  for (const BitField &part : at.parts)
    index |= (indices[at.byteOf(part)] >> part.shift & ((1 << part.bits) - 1)) << part.to;
  NumberPlace place(indexLayoutOf(bits), output, index);
  return static_cast<uint16_t>(tables[place.low] | tables[place.low + place.distance] << 8);
}

} // namespace hone::cpu
