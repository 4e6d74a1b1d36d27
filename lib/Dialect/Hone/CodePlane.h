// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers of few bits one after the other, as `#hone.affine` lays out codes: in bytes, and read in IR.

#ifndef HONE_LIB_DIALECT_HONE_CODEPLANE_H
#define HONE_LIB_DIALECT_HONE_CODEPLANE_H

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace hone {

/// Bytes of `columns` codes.
inline int64_t getCodeBytes(int64_t columns, int64_t bits) { return llvm::divideCeil(columns * bits, 8); }

/// A plane of codes in memory: where each lies, and how it is read and written.
class CodePlane {
public:
  /// Of `rows` rows, in `bytes` bytes; codes that are transposed have 8 bits.
  CodePlane(int64_t bits, bool isSigned, bool isTransposed, int64_t rows, int64_t bytes)
      : bits(bits), isSigned(isSigned), isTransposed(isTransposed), rows(rows),
        rowBytes(bytes / std::max<int64_t>(rows, 1)) {}

  int64_t load(llvm::ArrayRef<char> plane, int64_t row, int64_t column) const {
    int64_t first = byteOf(row, column, 0), last = byteOf(row, column, bits - 1),
            bytes = static_cast<uint8_t>(plane[first]);
    if (last != first)
      bytes |= static_cast<int64_t>(static_cast<uint8_t>(plane[last])) << 8;
    int64_t code = bytes >> shiftOf(column) & mask();
    return isSigned && code > mask() / 2 ? code - mask() - 1 : code;
  }

  /// Into a plane whose bytes were 0.
  void store(llvm::MutableArrayRef<char> plane, int64_t row, int64_t column, int64_t code) const {
    int64_t first = byteOf(row, column, 0), last = byteOf(row, column, bits - 1);
    int64_t bytes = (code & mask()) << shiftOf(column);
    plane[first] = static_cast<char>(plane[first] | bytes);
    if (last != first)
      plane[last] = static_cast<char>(plane[last] | bytes >> 8);
  }

private:
  int64_t mask() const { return (int64_t(1) << bits) - 1; }
  int64_t shiftOf(int64_t column) const { return column * bits % 8; }
  /// The byte that has bit `bit` of a code.
  int64_t byteOf(int64_t row, int64_t column, int64_t bit) const {
    return isTransposed ? column * rows + row : row * rowBytes + (column * bits + bit) / 8;
  }

  int64_t bits;
  bool isSigned, isTransposed;
  int64_t rows, rowBytes;
};

/// Reads code `column` of row `row` of a plane `[rows, bytes]`, as an integer of 8 or 16 bits.
mlir::Value buildCodeBits(mlir::OpBuilder &builder, mlir::Location loc, int64_t bits, bool isSigned, mlir::Value plane,
                          mlir::Value row, mlir::Value column);

} // namespace hone

#endif // HONE_LIB_DIALECT_HONE_CODEPLANE_H
