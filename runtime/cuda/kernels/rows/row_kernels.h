// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that work on one row at a time: norms.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ROWS_ROW_KERNELS_H
#define HONE_RUNTIME_CUDA_KERNELS_ROWS_ROW_KERNELS_H

#include "../row_view.h"

namespace hone::cuda {

struct RowKernelArguments {
  RowView x, y, weight, bias; // weight and bias are one row, or absent
  RowView first, second;      // of norms, or absent: x is their sum, written before it is read
  int64_t rows;
  float epsilon;
  int32_t unitOffset;
};

/// Threads of a row's block: at least a warp, and at most one for each four elements.
HONE_HOST_DEVICE constexpr int32_t threadsOfRow(int64_t count) {
  int32_t threads = 32;
  while (threads < 512 && threads * 4 < count)
    threads *= 2;
  return threads;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ROWS_ROW_KERNELS_H
