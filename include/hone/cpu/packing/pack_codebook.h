// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of which each output has a table of 16, 8 or 4 bf16, and indices of 4, 3 or 2 bits into it, in the layout that
// kernels read. As in layout.h a panel is 16 outputs, the last one filled up; inputs are padded to 32:
//
//   indices   [panel][step of 32 inputs][line][4 outputs][16 bytes]
//   tables    [panel][4 quarters][register][4 outputs][16 bytes]
//
// Quarter q of a panel has outputs q, 4 + q, 8 + q and 12 + q. The table of an output is 16 bytes wide, since that is
// what one instruction (pshufb) looks 16 bytes up in, each sixteen of a register in a table of its own: of 4 bits a
// register has the low bytes of the numbers, and one the high bytes; of fewer bits one has the low bytes in the first
// half of each sixteen and the high bytes in the second. So 32 indices are 16 bytes of each of four outputs twice, and
// two look-ups for each of them. A table of 32 bits a number that all lanes share (vpermps) would give f32 at once, and
// sixteen of them an instruction where two of these give 64; tables that lanes of different outputs share (vpermi2w,
// vpermi2b) do not hold sixteen outputs. With the usual panels, of sixteen outputs beside each other, a panel would
// take 16 such tables and as many look-ups.
//
// A step has eight sixteens of indices, number 2 q + h those of quarter q and inputs 16 h … 16 h + 15: in two lines of
// 3 they lie as the quads of a BitLayout do, but that each is 16 bytes of four outputs, and not 4 of sixteen. That is a
// line for two sixteens of 4 bits, three lines for eight of 3 bits, and a line for four of 2 bits.

#ifndef HONE_CPU_PACKING_PACK_CODEBOOK_H
#define HONE_CPU_PACKING_PACK_CODEBOOK_H

#include "hone/cpu/packing/pack_linear.h"

namespace hone::cpu {

constexpr int64_t kCodebookInputs = 32; // of a step
constexpr int64_t kQuarterOutputs = 4, kTableBytes = 16;

/// How indices of 2, 3 or 4 bits lie in the lines of a step: its quads are sixteens.
constexpr const BitLayout &indexLayoutOf(int64_t bits) {
  return bits == 4 ? kU4Layout : bits == 3 ? kU3Layout : kU2Layout;
}

constexpr int64_t kSixteens = 8; // of a step

/// Lines of a step, and registers of the table of a quarter.
constexpr int64_t indexLinesOf(const BitLayout &layout) { return kSixteens / layout.quads * layout.lines; }
constexpr int64_t tableRegistersOf(const BitLayout &layout) { return layout.bits == 4 ? 2 : 1; }

/// Shapes of the two planes as the operands of kernels have them, of bytes: {panels, lines, 4, 16} and {panels, 4 ·
/// registers, 4, 16}.
std::array<int64_t, 4> packedIndexPlane(int64_t bits, const LinearShape &shape);
std::array<int64_t, 4> packedTablePlane(int64_t bits, const LinearShape &shape);

/// Packs `indices` [outputs, inputs], a byte each. `packed` holds what the shape of the plane says; what fills it up is
/// index 0.
void packCodebookIndices(int64_t bits, const LinearShape &shape, const uint8_t *indices, std::span<uint8_t> packed);

/// Packs the bits of bf16 numbers [outputs, 2^bits]; what fills the plane up is 0.
void packCodebookTables(int64_t bits, const LinearShape &shape, const uint16_t *numbers, std::span<uint8_t> packed);

/// The bits of the number that an output's input has.
uint16_t loadCodebookNumber(int64_t bits, const LinearShape &shape, std::span<const uint8_t> indices,
                            std::span<const uint8_t> tables, int64_t output, int64_t input);

} // namespace hone::cpu

#endif // HONE_CPU_PACKING_PACK_CODEBOOK_H
