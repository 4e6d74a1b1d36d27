// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device kernels by name.

#ifndef HONE_RUNTIME_CUDA_KERNELS_KERNEL_TABLE_H
#define HONE_RUNTIME_CUDA_KERNELS_KERNEL_TABLE_H

#include "hone/runtime/program.h"

#include <span>
#include <string_view>

namespace hone::cuda {

/// A row of include/hone/kernels/cuda.def.
struct KernelRow {
  std::string_view name;
  hone_kernel_fn function;
};

/// The whole table.
std::span<const KernelRow> kernelRows();

/// The function of a kernel, or null for a name that is not in the table.
hone_kernel_fn findKernel(std::string_view name);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_KERNEL_TABLE_H
