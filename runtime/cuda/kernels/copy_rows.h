// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of any strides and type to dense rows of another.

#ifndef HONE_RUNTIME_CUDA_KERNELS_COPY_ROWS_H
#define HONE_RUNTIME_CUDA_KERNELS_COPY_ROWS_H

#include "row_view.h"

namespace hone::cuda {

struct CopyRowsArguments {
  RowView from;
  char *to;
  int64_t rows, stride; // rows of `to` are `stride` elements apart, zero-padded after from.count
  int32_t type;         // hone_dtype of `to`
};

/// What a block of copy_columns transposes at once, and its warps.
constexpr int32_t kTransposedTile = 32, kTransposingWarps = 8;

/// Whether neighbours are elements of a column: threads that go along rows would read a sector each.
constexpr bool isColumnMajor(const RowView &view) {
  return view.inner > 1 && view.sizes[0] == 1 && view.strides[2] == 1;
}

class KernelDevice;

/// `from` as dense rows of `type` in memory of the device that the caller releases (copy_rows.cu); rows begin at
/// multiples of 16 bytes. The view's count is from.count rounded up to a multiple of eight.
RowView copyRows(KernelDevice &device, const RowView &from, int64_t rows, int32_t type);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_COPY_ROWS_H
