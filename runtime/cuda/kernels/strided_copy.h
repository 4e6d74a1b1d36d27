// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel arguments of a copy between two views.

#ifndef HONE_RUNTIME_CUDA_KERNELS_STRIDED_COPY_H
#define HONE_RUNTIME_CUDA_KERNELS_STRIDED_COPY_H

#include "hone/runtime/program.h"

#include <cstdint>

namespace hone::cuda {

constexpr int kCopyRank = HONE_MAX_RANK;
constexpr uint32_t kCopyThreads = 256; // of a block

/// Elements of 1, 2, 4, 8 or 16 bytes, which is in the name of the kernel: strided_copy_1, … Sizes and strides count
/// them, from the outermost dimension to the innermost; those after `rank` have no meaning.
struct StridedCopy {
  void *to;
  const void *from;
  uint32_t count; // product of the sizes
  int32_t rank;
  uint32_t sizes[kCopyRank];
  int64_t toStrides[kCopyRank], fromStrides[kCopyRank];
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_STRIDED_COPY_H
