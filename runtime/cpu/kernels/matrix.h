// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last two axes of a tensor as a matrix, and tensors whose rows are evenly spaced as one matrix.

#ifndef HONE_RUNTIME_CPU_KERNELS_MATRIX_H
#define HONE_RUNTIME_CPU_KERNELS_MATRIX_H

#include "rows.h"

namespace {

struct Matrix {
  float *data;
  int64_t rows, columns, rowStride, columnStride;

  float &at(int64_t i, int64_t j) const { return data[i * rowStride + j * columnStride]; }
  bool isRowMajor() const { return (columnStride == 1 || columns == 1) && (rowStride >= columns || rows == 1); }
  Matrix transposed() const { return {data, columns, rows, columnStride, rowStride}; }
};

inline Matrix matrixAt(const hone_tensor &tensor, int64_t offset) {
  int32_t r = tensor.rank;
  return {floats(tensor) + offset, tensor.sizes[r - 2], tensor.sizes[r - 1], tensor.strides[r - 2],
          tensor.strides[r - 1]};
}

/// Merges the leading axes of a tensor into the rows of one matrix; false where their strides do not allow it.
inline bool collapseRows(const hone_tensor &tensor, Matrix &matrix) {
  matrix = matrixAt(tensor, 0);
  for (int32_t axis = tensor.rank - 2; axis-- > 0;) {
    if (tensor.sizes[axis] == 1)
      continue;
    if (matrix.rows == 1)
      matrix.rowStride = tensor.strides[axis];
    else if (tensor.strides[axis] != matrix.rows * matrix.rowStride)
      return false;
    matrix.rows *= tensor.sizes[axis];
  }
  return true;
}

/// A vector as a matrix of one row.
inline hone_tensor withRowAxis(hone_tensor tensor) {
  if (tensor.rank != 1)
    return tensor;
  tensor.rank = 2;
  tensor.sizes[1] = tensor.sizes[0];
  tensor.strides[1] = tensor.strides[0];
  tensor.sizes[0] = 1;
  return tensor;
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_MATRIX_H
