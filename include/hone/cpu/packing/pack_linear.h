// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of linear layers into the layout that the packed kernels read (layout.h). Host code without threads: the
// compiler calls it when it writes an artefact.

#ifndef HONE_CPU_PACKING_PACK_LINEAR_H
#define HONE_CPU_PACKING_PACK_LINEAR_H

#include "hone/cpu/packing/layout.h"
#include "hone/runtime/program.h"

#include <array>
#include <cstdint>
#include <span>

namespace hone::cpu {

/// How a packed weight stores its elements.
enum class PackedFormat : uint8_t { F32, F16, Bf16, U8, U6, U5, U4, U3, U2 };

/// How codes lie in a quantized format; null for the others.
const BitLayout *bitLayoutOf(PackedFormat format);

/// A linear layer [outputs, inputs]; `group` is how many inputs share a scale in a quantized format: 32, 64 or 128, or
/// 0 for one scale an output.
struct LinearShape {
  int64_t outputs, inputs;
  int64_t group = 0;
};

/// Shape of the packed weight, as the operand of the kernel has it: {panels, lines, 16, elements of a line and output},
/// of f32, f16, bf16 or u8 elements.
std::array<int64_t, 4> packedLinearShape(PackedFormat format, const LinearShape &shape);
int64_t packedLinearBytes(PackedFormat format, const LinearShape &shape);

/// Shape of packed scales and of packed zero points: {panels, groups, 16}.
std::array<int64_t, 3> packedScaleShape(PackedFormat format, const LinearShape &shape);

/// How many groups the weight has before packing: ceil(inputs / group), 1 without groups.
int64_t linearGroups(const LinearShape &shape);

/// A matrix [outputs, inputs] in memory; strides count elements, so that a transposed weight needs no copy.
struct WeightView {
  const void *data;
  int64_t outputStride, inputStride;
};

/// Packs f32, f16 or bf16 elements of the same type as the format, or codes of one byte an element, from 0 on.
/// `packed` holds packedLinearBytes.
void packLinearWeight(PackedFormat format, const LinearShape &shape, const WeightView &weight,
                      std::span<uint8_t> packed);

/// Packs one value for each output and group, [outputs, linearGroups], of elements of 1, 2 or 4 bytes (zero points, f16
/// scales, f32 scales). What the padding needs is 0: a scale of 0 makes any zero point right.
void packLinearScales(PackedFormat format, const LinearShape &shape, int64_t elementBytes, const void *values,
                      std::span<uint8_t> packed);

} // namespace hone::cpu

#endif // HONE_CPU_PACKING_PACK_LINEAR_H
