// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layout of attention by FMA.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ATTENTION_ATTENTION_FMA_H
#define HONE_RUNTIME_CUDA_KERNELS_ATTENTION_ATTENTION_FMA_H

#include "attention_arguments.h"

namespace hone::cuda {

constexpr int32_t kAttentionFmaWarps = 4,
                  kAttentionFmaParts = 16; // elements of a value of a lane: up to 512 of a value

/// Blocks of an SM by the launch bounds: registers of the masked one would spill with more.
constexpr int32_t kFmaResidents = 8, kMaskedFmaResidents = 4;

/// The query, and for each warp its running maximum, its sum of exponentials and its values.
HONE_HOST_DEVICE constexpr int64_t attentionFmaSharedBytes(int32_t size, int32_t valueSize) {
  return int64_t{4} * (size + kAttentionFmaWarps * (valueSize + 2));
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ATTENTION_ATTENTION_FMA_H
