// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMV, linear layers with small M: launch plans.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_GEMV_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_GEMV_H

#include "linear_arguments.h"

namespace hone::cuda {

constexpr int32_t kPartInputs = 32; // inputs that four lanes take as 16 bytes of bf16

/// The most warps of a block. Two tiles of outputs need more than 128 registers a lane.
HONE_HOST_DEVICE constexpr int32_t mostSlices(int32_t rowTiles) { return rowTiles == 2 ? 8 : 16; }

/// A block of the tensor-core kernel has rowTiles · 16 outputs and columnTiles · 8 rows of x; its warps are `slices`
/// K-slices, which take the chunks of inputs in turn.
struct GemvPlan {
  int32_t rowTiles, columnTiles, slices;
  int64_t blocks; // along the outputs
};

/// `chunks`: of inputs, each of which a warp reads at once; `convertsInputs`: whether inputs are split into hi and lo
/// terms on the way, whose cost two tiles of outputs then share.
///
/// GEMV is memory-bound, so an SM gets 32 warps or, with less work, all there is: a warp keeps 4 KiB of weights in
/// flight (gemv_kernel.h), and 4.8 TB/s · 0.8 µs on 132 SMs are 29 KiB each.
HONE_HOST_DEVICE constexpr GemvPlan planGemv(int64_t rows, int64_t outputs, int64_t chunks, bool convertsInputs,
                                             int32_t multiprocessors) {
  GemvPlan plan = {1, rows > 8 ? 2 : 1, 4, 0};
  int64_t pairs = divideUp(outputs, 32);
  if (plan.columnTiles == 2 || pairs >= 4 * multiprocessors || (convertsInputs && pairs >= multiprocessors))
    plan.rowTiles = 2;
  plan.blocks = divideUp(outputs, 16 * plan.rowTiles);
  while (plan.slices < mostSlices(plan.rowTiles) && plan.slices * 2 <= chunks &&
         plan.blocks * plan.slices < int64_t{32} * multiprocessors)
    plan.slices *= 2;
  return plan;
}

/// Bytes of shared memory for the partial sums of a block's warps.
HONE_HOST_DEVICE constexpr int64_t gemvSharedBytes(const GemvPlan &plan) {
  return int64_t{4} * plan.slices * plan.rowTiles * 16 * plan.columnTiles * 8;
}

/// Split-K: how many blocks divide the inputs, where the blocks of a launch are at most a quarter of the SMs. A warp
/// keeps eight of its `chunks` at least, as the round trip of partial sums takes about as long as two launches.
HONE_HOST_DEVICE constexpr int32_t planGemvSplitK(int64_t blocks, int64_t chunks, int32_t multiprocessors) {
  constexpr int64_t kFewestChunks = 8;
  if (blocks * 4 > multiprocessors)
    return 1;
  int64_t room = multiprocessors / blocks, most = chunks / kFewestChunks;
  int64_t splits = room < most ? room : most;
  return splits < 1 ? 1 : static_cast<int32_t>(splits);
}

constexpr int32_t kGemvFmaOutputs = 4;  // of a warp of the FMA kernel
constexpr int32_t kGemvFmaInputs = 128; // that a warp reads at once, four a lane

/// The same for the FMA kernel: a block has `groups` · 4 outputs, `groups` · `slices` warps and `rowsAtOnce` rows of
/// x.
struct GemvFmaPlan {
  int32_t rowsAtOnce, groups, slices;
  int64_t blocks;
};

HONE_HOST_DEVICE constexpr GemvFmaPlan planGemvFma(int64_t rows, int64_t outputs, int64_t inputs,
                                                   int32_t multiprocessors) {
  GemvFmaPlan plan = {rows > 4 ? 16 : rows > 1 ? 4 : 1, 8, 1, 0};
  while (plan.groups > 1 && divideUp(outputs, kGemvFmaOutputs * plan.groups) * 8 < int64_t{16} * multiprocessors &&
         plan.slices * 2 * kGemvFmaInputs <= inputs) {
    plan.groups /= 2;
    plan.slices *= 2;
  }
  plan.blocks = divideUp(outputs, int64_t{kGemvFmaOutputs} * plan.groups);
  return plan;
}

HONE_HOST_DEVICE constexpr int64_t gemvFmaSharedBytes(const GemvFmaPlan &plan) {
  return int64_t{4} * plan.slices * plan.groups * kGemvFmaOutputs * plan.rowsAtOnce;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_GEMV_H
