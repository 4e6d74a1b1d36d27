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

/// The two columns that are stored of four columns.
struct Kept {
  uint32_t first, second;
};

/// Those of columns 4 group … of a row of A, of which two of four are stored; the depth of A with all columns is 16 or 32.
///
/// A word of metadata has 16 bits for 16 columns of row g and 16 for those of row g + 8: 4 bits for each four columns, the column of
/// the first number in the lower two. With a depth of 16 the selector names the lane of each four that has the word, with
/// 32 the pair of lanes, the second of which has columns 16 to 31 (PTX ISA, figures "Sparse MMA metadata layout", and for wgmma "Sparse
/// WGMMA .m64nNk32 metadata layout", of 16 rows a warp). Both numbers at one column, and where metadata are ordered the second before
/// the first, are undefined there and a fault here.
inline Kept keptColumns(const uint32_t *metadata, uint32_t row, uint32_t group, uint32_t depth, uint32_t selector,
                        bool ordered) {
  uint32_t lane = row % 8 * 4 + (depth == 16 ? selector : 2 * selector + group / 4);
  uint32_t bits = metadata[lane] >> (row / 8 * 16 + group % 4 * 4);
  Kept kept{4 * group + (bits & 3), 4 * group + (bits >> 2 & 3)};
  if (kept.first == kept.second || (ordered && kept.first > kept.second))
    throw Fault(Fault::Kind::IllegalInstruction, "metadata that do not name two columns of four");
  return kept;
}

/// Such instructions are for all lanes at once.
inline void expectWholeWarp(uint32_t mask) {
  if (mask != kAllLanes)
    throw Fault(Fault::Kind::IllegalInstruction, "an instruction of a whole warp that not all lanes have come to");
}

} // namespace hone::emulation
