// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM by 2:4 weights: tiles and the layout of shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_SPARSE_GEMM_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_SPARSE_GEMM_H

#include "gemm.h"

namespace hone::cuda {

/// Inputs of a tile: rows of 64 bytes of kept elements, and 8 bytes of indices. In GemmArguments the planes of the
/// weight have the kept elements, half as many as `depth`, which is a multiple of 32.
constexpr int32_t kSparseDepth = 64;

HONE_HOST_DEVICE constexpr int32_t sparseStages(int32_t planes) { return planes <= 2 ? 3 : 2; }

/// x, then kept elements, then indices. Rows of x are two halves of 32 inputs, laid out as in dense GEMM.
HONE_HOST_DEVICE constexpr int32_t sparseStageBytes(int32_t tileRows, int32_t xPlanes, int32_t weightPlanes) {
  return xPlanes * tileRows * kSparseDepth * 2 + weightPlanes * kTileOutputs * kSparseDepth + kTileOutputs * 8;
}

/// Stages of operands; the accumulators reuse the memory.
HONE_HOST_DEVICE constexpr int32_t sparseSharedBytes(int32_t tileRows, int32_t xPlanes, int32_t weightPlanes) {
  int32_t operands = sparseStages(xPlanes + weightPlanes) * sparseStageBytes(tileRows, xPlanes, weightPlanes);
  int32_t sums = tileRows * kTileOutputs * 4;
  return operands > sums ? operands : sums;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_SPARSE_GEMM_H
