// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies elements to where layout.h says they are.

#include "hone/cpu/packing/pack_linear.h"

#include <algorithm>
#include <cstring>

namespace hone::cpu {
namespace {

int64_t roundUp(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

/// Inputs and lines of a step, bytes that a line has for each output, and what inputs are padded to.
struct FormatInfo {
  int64_t stepInputs, lines, lineBytes, elementBytes, inputMultiple;
};

FormatInfo infoOf(PackedFormat format) {
  if (const BitLayout *codes = bitLayoutOf(format))
    return {codes->inputs(), codes->lines, 4, 1, kQuantizedInputs};
  if (format == PackedFormat::Bf16)
    return {2, 1, 4, 2, kBf16Inputs};
  int64_t bytes = format == PackedFormat::F32 ? 4 : 2;
  return {1, 1, bytes, bytes, 1};
}

int64_t panelsOf(const LinearShape &shape) { return roundUp(shape.outputs, kPanelOutputs) / kPanelOutputs; }

int64_t paddedInputs(PackedFormat format, const LinearShape &shape) {
  return roundUp(shape.inputs, std::max(infoOf(format).inputMultiple, shape.group));
}

int64_t packedGroups(PackedFormat format, const LinearShape &shape) {
  return shape.group == 0 ? 1 : paddedInputs(format, shape) / shape.group;
}

/// The bytes of one output in the lines of a step, which were 0.
void packCodes(const BitLayout &layout, const uint8_t *codes, int64_t stride, int64_t count, uint8_t *to) {
  for (int64_t k = 0; k < count; ++k)
    for (const BitField &part : layout.parts[k / 4]) {
      int32_t bits = codes[k * stride] >> part.to & ((1 << part.bits) - 1);
      to[part.line * kPanelOutputs * 4 + k % 4] |= static_cast<uint8_t>(bits << part.shift);
    }
}

/// Inputs of floats that are transposed at a time, so that what a panel gets of them stays in L1.
constexpr int64_t kBlockInputs = 32;

/// Transposes one panel, whose padding is 0: PAIR neighbouring inputs of an output lie together.
template <typename Element, int64_t PAIR>
void packFloatPanel(const Element *from, int64_t outputs, int64_t inputs, const WeightView &strides, Element *to) {
  for (int64_t first = 0; first < inputs; first += kBlockInputs) {
    int64_t end = std::min(first + kBlockInputs, inputs);
    for (int64_t o = 0; o < outputs; ++o) {
      const Element *row = from + o * strides.outputStride;
      for (int64_t k = first; k < end; ++k)
        to[(k / PAIR * kPanelOutputs + o) * PAIR + k % PAIR] = row[k * strides.inputStride];
    }
  }
}

template <typename Element, int64_t PAIR>
void packFloats(PackedFormat format, const LinearShape &shape, const WeightView &weight, std::span<uint8_t> packed) {
  auto [panels, lines, outputs, elements] = packedLinearShape(format, shape);
  int64_t panelElements = lines * outputs * elements;
  for (int64_t panel = 0; panel < panels; ++panel) {
    int64_t first = panel * outputs, count = std::min(outputs, shape.outputs - first);
    auto *to = reinterpret_cast<Element *>(packed.data()) + panel * panelElements;
    if (count < outputs || lines * elements > shape.inputs)
      std::fill(to, to + panelElements, Element(0));
    packFloatPanel<Element, PAIR>(static_cast<const Element *>(weight.data) + first * weight.outputStride, count,
                                  shape.inputs, weight, to);
  }
}

} // namespace

const BitLayout *bitLayoutOf(PackedFormat format) {
  switch (format) {
  case PackedFormat::U8:
    return &kU8Layout;
  case PackedFormat::U6:
    return &kU6Layout;
  case PackedFormat::U5:
    return &kU5Layout;
  case PackedFormat::U4:
    return &kU4Layout;
  case PackedFormat::U3:
    return &kU3Layout;
  case PackedFormat::U2:
    return &kU2Layout;
  default:
    return nullptr;
  }
}

std::array<int64_t, 4> packedLinearShape(PackedFormat format, const LinearShape &shape) {
  FormatInfo info = infoOf(format);
  return {panelsOf(shape), paddedInputs(format, shape) / info.stepInputs * info.lines, kPanelOutputs,
          info.lineBytes / info.elementBytes};
}

int64_t packedLinearBytes(PackedFormat format, const LinearShape &shape) {
  auto [panels, lines, outputs, elements] = packedLinearShape(format, shape);
  return panels * lines * outputs * elements * infoOf(format).elementBytes;
}

std::array<int64_t, 3> packedScaleShape(PackedFormat format, const LinearShape &shape) {
  return {panelsOf(shape), packedGroups(format, shape), kPanelOutputs};
}

int64_t linearGroups(const LinearShape &shape) {
  return shape.group == 0 ? 1 : roundUp(shape.inputs, shape.group) / shape.group;
}

void packLinearWeight(PackedFormat format, const LinearShape &shape, const WeightView &weight,
                      std::span<uint8_t> packed) {
  if (format == PackedFormat::F32)
    return packFloats<uint32_t, 1>(format, shape, weight, packed);
  if (format == PackedFormat::F16)
    return packFloats<uint16_t, 1>(format, shape, weight, packed);
  if (format == PackedFormat::Bf16)
    return packFloats<uint16_t, 2>(format, shape, weight, packed);
  FormatInfo info = infoOf(format);
  const BitLayout &codes = *bitLayoutOf(format);
  std::ranges::fill(packed, 0);
  const auto *data = static_cast<const uint8_t *>(weight.data);
  int64_t steps = paddedInputs(format, shape) / info.stepInputs;
  int64_t inputBytes = weight.inputStride * info.elementBytes, outputBytes = weight.outputStride * info.elementBytes;
  for (int64_t n = 0; n < shape.outputs; ++n)
    for (int64_t k = 0; k < shape.inputs; k += info.stepInputs) {
      int64_t step = n / kPanelOutputs * steps + k / info.stepInputs;
      packCodes(codes, data + n * outputBytes + k * inputBytes, inputBytes, std::min(info.stepInputs, shape.inputs - k),
                packed.data() + (step * info.lines * kPanelOutputs + n % kPanelOutputs) * info.lineBytes);
    }
}

void packLinearScales(PackedFormat format, const LinearShape &shape, int64_t elementBytes, const void *values,
                      std::span<uint8_t> packed) {
  std::ranges::fill(packed, 0);
  const auto *from = static_cast<const uint8_t *>(values);
  int64_t groups = linearGroups(shape), rows = packedGroups(format, shape);
  for (int64_t n = 0; n < shape.outputs; ++n)
    for (int64_t g = 0; g < groups; ++g) {
      int64_t row = n / kPanelOutputs * rows + g;
      std::memcpy(packed.data() + (row * kPanelOutputs + n % kPanelOutputs) * elementBytes,
                  from + (n * groups + g) * elementBytes, static_cast<size_t>(elementBytes));
    }
}

} // namespace hone::cpu
