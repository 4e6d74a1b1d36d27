// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the numbers of matrices lie in the registers of a warp.
//
// Operands of mma are matrices of 16 rows (A, C, D) and 8 columns (B, C, D). A register of 32 bits has e numbers that are neighbours in
// the dimension that is summed over. Lane 4 g + t has, for A, row g of its registers 0 and 2 and row g + 8 of registers 1 and 3, and
// for B column g; the numbers of registers begin at t e, and after every 4 e of that dimension the next register
// (or, for A, pair of registers) follows. C has columns 2 t and 2 t + 1 of rows g and g + 8. This is one formula for the figures
// "Matrix Fragments for mma" of the PTX ISA with elements of 8, 16 and 32 bits.

#pragma once

#include "ptx/warp.h"

namespace hone::emulation {

constexpr uint32_t kRows = 16;
constexpr uint32_t kColumns = 8;
constexpr uint32_t kMaxDepth = 64;

/// Position of a number: element `i` of register `r` of a lane, with `perRegister` numbers in a register.
struct Position {
  uint32_t line; // row of A, column of B
  uint32_t depth;
};

inline Position positionInA(uint32_t lane, uint32_t r, uint32_t i, uint32_t perRegister) {
  return {lane / 4 + 8 * (r & 1), lane % 4 * perRegister + i + (r >> 1) * 4 * perRegister};
}
inline Position positionInB(uint32_t lane, uint32_t r, uint32_t i, uint32_t perRegister) {
  return {lane / 4, lane % 4 * perRegister + i + r * 4 * perRegister};
}
/// Of accumulators, by their number among those of a lane (0 to 3).
inline Position positionInC(uint32_t lane, uint32_t i) { return {lane / 4 + 8 * (i >> 1), lane % 4 * 2 + (i & 1)}; }

/// Such instructions are for all lanes at once.
inline void expectWholeWarp(uint32_t mask) {
  if (mask != kAllLanes)
    throw Fault(Fault::Kind::IllegalInstruction, "an instruction of a whole warp that not all lanes have come to");
}

} // namespace hone::emulation
