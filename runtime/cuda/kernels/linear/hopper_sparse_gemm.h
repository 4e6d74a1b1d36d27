// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM by 2:4 weights on sm_90a: tiles and the layout of shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_SPARSE_GEMM_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_SPARSE_GEMM_H

#include "hopper_gemm.h"

namespace hone::cuda {

/// A block has 192 outputs, 64 of each of three warpgroups, and 256 rows; a stage holds 64 inputs of the rows and the
/// 32 kept elements of each output.
constexpr int32_t kHopperSparseOutputs = 192, kHopperSparseRows = 256, kHopperSparseDepth = 64;
constexpr int32_t kHopperSparseKept = kHopperSparseDepth / 2, kHopperSparseStages = 4, kHopperSparseThreads = 384;

/// Steps of a product of planes, an even number: those past the last input multiply zeros.
HONE_HOST_DEVICE constexpr int32_t hopperSparseSteps(int64_t depth) {
  return 2 * static_cast<int32_t>(divideUp(depth, 2 * kHopperSparseDepth));
}

constexpr int32_t kHopperSparseWeightBytes = kHopperSparseOutputs * kHopperSparseKept * 2;
constexpr int32_t kHopperSparseStageBytes = kHopperSparseWeightBytes + kHopperSparseRows * kHopperSparseDepth * 2;
/// Stages, a staging tile of each warpgroup, two mbarriers of each stage, and the state of the producer thread.
constexpr int32_t kHopperSparseStaging = kHopperSparseStages * kHopperSparseStageBytes;
constexpr int32_t kHopperSparseBarriers = kHopperSparseStaging + 3 * kStagingBytes;
constexpr int32_t kHopperSparseProducer = kHopperSparseBarriers + kHopperSparseStages * 2 * 8;
constexpr int32_t kHopperSparseBytes = kHopperSparseProducer + 32;

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_SPARSE_GEMM_H
