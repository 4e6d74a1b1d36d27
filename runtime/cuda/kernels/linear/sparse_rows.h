// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of many rows by 2:4 weights: tiles of a product, and where they lie in shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_SPARSE_ROWS_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_SPARSE_ROWS_H

#include "many_rows.h"

namespace hone::cuda {

/// Inputs of a tile: rows of 64 bytes of kept numbers, and 8 bytes of their places. In the arguments of such a product (ManyRowsArguments)
/// planes of the weight have the kept numbers, half as many as `depth`, which is a multiple of 32.
constexpr int32_t kSparseDepth = 64;

HONE_HOST_DEVICE constexpr int32_t sparseStages(int32_t planes) { return planes <= 2 ? 3 : 2; }

/// x, then kept numbers, then places. Rows of x are two halves of 32 inputs, each as tiles of dense products have them.
HONE_HOST_DEVICE constexpr int32_t sparseStageBytes(int32_t tileRows, int32_t xPlanes, int32_t weightPlanes) {
  return xPlanes * tileRows * kSparseDepth * 2 + weightPlanes * kTileOutputs * kSparseDepth + kTileOutputs * 8;
}

/// The tiles of operands, and afterwards the sums.
HONE_HOST_DEVICE constexpr int32_t sparseSharedBytes(int32_t tileRows, int32_t xPlanes, int32_t weightPlanes) {
  int32_t operands = sparseStages(xPlanes + weightPlanes) * sparseStageBytes(tileRows, xPlanes, weightPlanes);
  int32_t sums = tileRows * kTileOutputs * 4;
  return operands > sums ? operands : sums;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_SPARSE_ROWS_H
