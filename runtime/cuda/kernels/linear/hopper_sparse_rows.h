// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plan of layers of many rows by 2:4 weights on sm_90a: tiles, and where they lie in shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_SPARSE_ROWS_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_SPARSE_ROWS_H

#include "hopper_sums.h"
#include "many_rows.h"

namespace hone::cuda {

/// A block has 192 outputs, 64 for each of three warpgroups, and 256 rows; a stage holds 64 inputs of the rows and the 32 numbers that
/// are kept of them of the outputs.
constexpr int32_t kHopperSparseOutputs = 192, kHopperSparseRows = 256, kHopperSparseDepth = 64;
constexpr int32_t kHopperSparseKept = kHopperSparseDepth / 2, kHopperSparseStages = 4, kHopperSparseThreads = 384;

struct HopperSparseRowsArguments {
  ManyRowsArguments layer;
  int32_t products; // of planes: W · x, then W · the rest of x, then the rest of W · x
};

/// Steps of a product of planes, an even number: those behind the inputs multiply zeros.
HONE_HOST_DEVICE constexpr int32_t hopperSparseSteps(int64_t depth) {
  return 2 * static_cast<int32_t>(divideUp(depth, 2 * kHopperSparseDepth));
}

constexpr int32_t kHopperSparseWeightBytes = kHopperSparseOutputs * kHopperSparseKept * 2;
constexpr int32_t kHopperSparseStageBytes = kHopperSparseWeightBytes + kHopperSparseRows * kHopperSparseDepth * 2;
/// Stages, the sums that three warpgroups are finishing, two barriers for each stage, and what the thread that copies is at.
constexpr int32_t kHopperSparseSums = kHopperSparseStages * kHopperSparseStageBytes;
constexpr int32_t kHopperSparseBarriers = kHopperSparseSums + 3 * kPieceBytes;
constexpr int32_t kHopperSparseCopies = kHopperSparseBarriers + kHopperSparseStages * 2 * 8;
constexpr int32_t kHopperSparseBytes = kHopperSparseCopies + 32;

struct DeviceLimits;
struct Planes;
class KernelDevice;

/// Whether the chip has the kernel, and its tiles keep at least half of the multiprocessors busy.
bool fitsHopperSparseRows(const DeviceLimits &limits, const LinearArguments &layer);
void runHopperSparseRows(KernelDevice &device, const ManyRowsArguments &args, const Planes &planes);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_SPARSE_ROWS_H
