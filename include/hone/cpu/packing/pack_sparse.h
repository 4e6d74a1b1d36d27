// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of which two of every four inputs are kept, in the layout that kernels read. As in layout.h a panel is 16
// outputs, the last one filled up with zeros; inputs are padded to 32, those of codes to 64 and to the group:
//
//   f32, f16   [panel][input / 4][2 kept][16 outputs]
//   bf16       [panel][input / 4][16 outputs][2 kept]
//   u8         [panel][input / 8][16 outputs][4 kept]
//   u4         [panel][input / 16][16 outputs][4 bytes]     byte j holds kept element j of the first eight inputs in its low
//                                                           four bits, of the other eight in its high four bits
//   indices    [panel][input / 32][16 outputs][4 bytes]     words of 32 bits with two bits a kept element: which of its four
//                                                           inputs it is. Element j of four inputs 4 g has bits 16 j + 2 g of
//                                                           its word where elements are floats. Element j of eight inputs 8 q
//                                                           has bits 8 j + 2 q where they are codes
//
// So a word, or a byte, of indices lies where the elements lie whose inputs it picks, and a shift by two bits is the
// next step. Scales and zero points are those of dense weights (layout.h). What fills a weight up is 0 and picks input
// 0.

#ifndef HONE_CPU_PACKING_PACK_SPARSE_H
#define HONE_CPU_PACKING_PACK_SPARSE_H

#include "hone/cpu/packing/pack_linear.h"

namespace hone::cpu {

constexpr int64_t kIndexInputs = 32; // inputs that a word of indices is for

/// Shapes of the two planes as the operands of kernels have them: {panels, steps, lines or outputs, elements}, of f32,
/// f16, bf16 or u8; and {panels, inputs / 32, 16, 4} bytes.
std::array<int64_t, 4> packedSparseShape(PackedFormat format, const LinearShape &shape);
std::array<int64_t, 4> packedIndexShape(PackedFormat format, const LinearShape &shape);

/// Where a kept element is: the first byte of its value, or with u4 the byte and how far up in it; and of its index
/// likewise.
struct KeptPlace {
  int64_t value, valueShift;
  int64_t index, indexShift;
};

/// The place of kept element `kept`, 0 or 1, of the four inputs from 4 · `group` on of an output.
KeptPlace placeOfKept(PackedFormat format, const LinearShape &shape, int64_t output, int64_t group, int64_t kept);

/// Packs the kept elements of `shape`, whose inputs are a multiple of 4: `values` and `indices` are [outputs, inputs /
/// 2], in the order of the inputs, of the format's type (codes: one byte each) and of bytes from 0 to 3. The planes
/// hold as much as their shapes say.
void packSparseLinear(PackedFormat format, const LinearShape &shape, const void *values, const uint8_t *indices,
                      std::span<uint8_t> packedValues, std::span<uint8_t> packedIndices);

} // namespace hone::cpu

#endif // HONE_CPU_PACKING_PACK_SPARSE_H
