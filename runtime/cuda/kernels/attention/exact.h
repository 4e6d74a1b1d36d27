// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plan of attention without matrix units.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ATTENTION_EXACT_H
#define HONE_RUNTIME_CUDA_KERNELS_ATTENTION_EXACT_H

#include "attention_arguments.h"

namespace hone::cuda {

constexpr int32_t kExactWarps = 4, kExactParts = 16; // a lane has so many numbers of a value: up to 512

/// The query, and for each warp its largest logit, its sum and its values.
HONE_HOST_DEVICE constexpr int64_t exactSharedBytes(int32_t size, int32_t valueSize) {
  return int64_t{4} * (size + kExactWarps * (valueSize + 2));
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ATTENTION_EXACT_H
