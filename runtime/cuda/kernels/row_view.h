// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of a tensor as device code walks them: its last axis is a row, its leading axes number the rows.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ROW_VIEW_H
#define HONE_RUNTIME_CUDA_KERNELS_ROW_VIEW_H

#include "hone/runtime/program.h"
#include "host_device.h"

namespace hone::cuda {

/// Rows of `count` elements. Leading axes are at most three after contiguous neighbours are merged; strides and sizes
/// count elements. `data` is null for an absent tensor.
struct RowView {
  char *data;
  int32_t dtype;      // HONE_F32, HONE_F16 or HONE_BF16
  int32_t isVector;   // 1: elements of a row are contiguous, and every row begins at a multiple of 16 bytes
  int64_t count;      // elements of a row
  int64_t inner;      // stride within a row
  int64_t sizes[2];   // of the last two leading axes
  int64_t strides[3]; // of the three leading axes

  HONE_HOST_DEVICE int64_t offset(int64_t row) const {
    if (sizes[0] == 1) // the common case, without a division
      return row * strides[2];
    return offsetOfAxes(static_cast<uint32_t>(row), static_cast<uint32_t>(sizes[0]), static_cast<uint32_t>(sizes[1]),
                        strides[0], strides[1], strides[2]);
  }

private:
  HONE_HOST_DEVICE_CALL static int64_t offsetOfAxes(uint32_t row, uint32_t middle, uint32_t last, int64_t first,
                                                    int64_t second, int64_t third) {
    uint32_t rest = row / last;
    return row % last * third + rest % middle * second + rest / middle * first;
  }
};

/// The matrices of a tensor's last two axes: their rows, and what lies between those of one.
struct MatrixView {
  RowView rows;
  int64_t rowStride; // in elements
};

HONE_HOST_DEVICE constexpr int32_t bytesOf(int32_t dtype) { return dtype == HONE_F32 ? 4 : 2; }

/// The rows of `tensor`; an absent view where it has no elements. Up to 2^31 rows.
RowView rowsOf(const hone_tensor &tensor);

/// The same of the matrices of `tensor`, of rank 2 at least.
MatrixView matricesOf(const hone_tensor &tensor);

/// How many rows a tensor has: the product of its leading sizes.
int64_t countRows(const hone_tensor &tensor);

bool isAbsent(const hone_tensor &tensor);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ROW_VIEW_H
