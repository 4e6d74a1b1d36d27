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
  int32_t isConstant; // nothing writes weight and bias while the call runs (KernelDevice::isConstant)
};

constexpr int32_t kMostRowThreads = 512;
constexpr int32_t kQuadsOfThread = 2; // of four elements, which a thread of a vectorized norm holds at most
constexpr int32_t kMostHeldElements = 1024 * 4 * kQuadsOfThread;

/// Threads that hold a row of a vectorized norm.
HONE_HOST_DEVICE constexpr int32_t threadsOfHeldRow(int64_t count) {
  int32_t threads = 32;
  while (threads * 4 * kQuadsOfThread < count)
    threads *= 2;
  return threads;
}

/// Threads of a row's block: at least a warp, and at most one for each four elements.
HONE_HOST_DEVICE constexpr int32_t threadsOfRow(int64_t count) {
  int32_t threads = 32;
  while (threads < kMostRowThreads && threads * 4 < count)
    threads *= 2;
  return threads;
}

class KernelDevice;

/// Enqueues the RMSNorm of rows, args.x, with a weight or none.
void runRmsNorm(KernelDevice &device, const RowKernelArguments &args);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ROWS_ROW_KERNELS_H
