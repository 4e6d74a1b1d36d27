// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of matrices in f64. Vectors run along the columns of c, so that no sum is ever made over lanes; products and sums
// are rounded apart (no fused multiply-add, see CMakeLists.txt), so that every width of vectors gives the same bits.

#include "DenseProduct.h"

#include "EveryWidth.h"

namespace hone::compress {

/// Rows and columns of c that stay in registers: 4 x 2 vectors of 8, or 4 x 4 of 4.
static constexpr int64_t kRows = 4, kColumns = 16;

HONE_EVERY_WIDTH
void subtractProduct(int64_t rows, int64_t columns, int64_t depth, ConstBlock a, ConstBlock b, Block c) {
  int64_t column = 0;
  for (; column + kColumns <= columns; column += kColumns) {
    int64_t row = 0;
    for (; row + kRows <= rows; row += kRows) {
      double sums[kRows][kColumns];
      for (int64_t i = 0; i < kRows; ++i)
        for (int64_t j = 0; j < kColumns; ++j)
          sums[i][j] = c.data[(row + i) * c.leading + column + j];
      for (int64_t k = 0; k < depth; ++k) {
        const double *factors = b.data + k * b.leading + column;
        for (int64_t i = 0; i < kRows; ++i) {
          double factor = a.data[(row + i) * a.leading + k];
          for (int64_t j = 0; j < kColumns; ++j)
            sums[i][j] -= factor * factors[j];
        }
      }
      for (int64_t i = 0; i < kRows; ++i)
        for (int64_t j = 0; j < kColumns; ++j)
          c.data[(row + i) * c.leading + column + j] = sums[i][j];
    }
    for (; row < rows; ++row)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t j = 0; j < kColumns; ++j)
          c.data[row * c.leading + column + j] -= a.data[row * a.leading + k] * b.data[k * b.leading + column + j];
  }
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t j = column; j < columns; ++j)
        c.data[row * c.leading + j] -= a.data[row * a.leading + k] * b.data[k * b.leading + j];
}

} // namespace hone::compress
