// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers of few bits one behind the other, as `#hone.affine` lays out levels: in bytes, and read in IR.

#ifndef HONE_LIB_DIALECT_HONE_LEVELPLANE_H
#define HONE_LIB_DIALECT_HONE_LEVELPLANE_H

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace hone {

/// Bytes of `columns` levels.
inline int64_t getLevelBytes(int64_t columns, int64_t bits) { return llvm::divideCeil(columns * bits, 8); }

/// A plane of levels in memory: where each lies, and how it is read and written.
class LevelPlane {
public:
  /// Of `rows` rows, in `bytes` bytes; levels that are transposed have 8 bits.
  LevelPlane(int64_t bits, bool isSigned, bool isTransposed, int64_t rows, int64_t bytes)
      : bits(bits), isSigned(isSigned), isTransposed(isTransposed), rows(rows),
        rowBytes(bytes / std::max<int64_t>(rows, 1)) {}

  int64_t load(llvm::ArrayRef<char> plane, int64_t row, int64_t column) const {
    int64_t first = byteOf(row, column, 0), last = byteOf(row, column, bits - 1),
            bytes = static_cast<uint8_t>(plane[first]);
    if (last != first)
      bytes |= static_cast<int64_t>(static_cast<uint8_t>(plane[last])) << 8;
    int64_t level = bytes >> shiftOf(column) & mask();
    return isSigned && level > mask() / 2 ? level - mask() - 1 : level;
  }

  /// Into a plane whose bytes were 0.
  void store(llvm::MutableArrayRef<char> plane, int64_t row, int64_t column, int64_t level) const {
    int64_t first = byteOf(row, column, 0), last = byteOf(row, column, bits - 1);
    int64_t bytes = (level & mask()) << shiftOf(column);
    plane[first] = static_cast<char>(plane[first] | bytes);
    if (last != first)
      plane[last] = static_cast<char>(plane[last] | bytes >> 8);
  }

private:
  int64_t mask() const { return (int64_t(1) << bits) - 1; }
  int64_t shiftOf(int64_t column) const { return column * bits % 8; }
  /// The byte that has bit `bit` of a level.
  int64_t byteOf(int64_t row, int64_t column, int64_t bit) const {
    return isTransposed ? column * rows + row : row * rowBytes + (column * bits + bit) / 8;
  }

  int64_t bits;
  bool isSigned, isTransposed;
  int64_t rows, rowBytes;
};

/// Reads level `column` of row `row` of a plane `[rows, bytes]`, as an integer of 8 or 16 bits.
mlir::Value buildLevelBits(mlir::OpBuilder &builder, mlir::Location loc, int64_t bits, bool isSigned, mlir::Value plane,
                           mlir::Value row, mlir::Value column);

} // namespace hone

#endif // HONE_LIB_DIALECT_HONE_LEVELPLANE_H
