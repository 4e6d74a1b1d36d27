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

/// The names of the tensor-core kernels of a format, by tiles of outputs and of rows of x.
#define HONE_GEMV_TILE_NAMES(name) {name "_1x1", name "_2x1", name "_2x2"}

/// A block of the tensor-core kernel has rowTiles · 16 outputs and columnTiles · 8 rows of x; its warps are `slices`
/// K-slices, which take the chunks of inputs in turn.
struct GemvPlan {
  int32_t rowTiles, columnTiles, slices;
  int64_t blocks; // along the outputs
};

/// Warps of an SM: kernels of floats with one tile of outputs use 64 registers, all others about 128.
constexpr int32_t kDenseWarps = 32, kQuantizedWarps = 16;

/// `chunks`: of inputs, each of which a warp reads at once; `warps`: of an SM.
///
/// GEMV is memory-bound, so all SMs get as many warps as they have room for, with no more blocks than run at once where
/// that can be: a second wave of blocks costs as much as the first. More K-slices than that have been measured to be
/// slower, and so have two tiles of outputs except where there are very many.
HONE_HOST_DEVICE constexpr GemvPlan planGemv(int64_t rows, int64_t outputs, int64_t chunks, int32_t warps,
                                             int32_t multiprocessors) {
  GemvPlan plan = {1, rows > 8 ? 2 : 1, 4, 0};
  if (plan.columnTiles == 2 || divideUp(outputs, 32) >= 4 * multiprocessors)
    plan.rowTiles = 2;
  plan.blocks = divideUp(outputs, 16 * plan.rowTiles);
  while (plan.slices < mostSlices(plan.rowTiles) && plan.slices * 2 <= chunks &&
         plan.blocks * plan.slices * 2 <= int64_t{warps} * multiprocessors)
    plan.slices *= 2;
  return plan;
}

/// The most warps of a block of sibling layers, and of an SM: their kernels of floats use up to 80 registers.
constexpr int32_t kSiblingSlices = 8, kSiblingWarps = 24;

/// Blocks of siblings of an SM at least, by those of single layers with one and two tiles of outputs.
HONE_HOST_DEVICE constexpr int32_t residentsOfSiblings(const int32_t (&residents)[2], int32_t rowTiles) {
  return rowTiles == 2 ? residents[1] : residents[0] + 1;
}

/// planGemv for sibling layers with so many tiles of 16 outputs together. Blocks of up to 8 rows have one tile.
HONE_HOST_DEVICE constexpr GemvPlan planSiblingGemv(int64_t rows, int64_t tiles, int64_t chunks, int32_t warps,
                                                    int32_t multiprocessors) {
  GemvPlan plan = planGemv(rows, 16 * tiles, chunks, warps < kSiblingWarps ? warps : kSiblingWarps, multiprocessors);
  if (plan.columnTiles == 1)
    plan.rowTiles = 1;
  plan.slices = plan.slices < kSiblingSlices ? plan.slices : kSiblingSlices;
  return plan;
}

/// planGemv for a gate and an up layer: every block has a tile of each, hence as many registers and as much work as two
/// blocks with one tile.
HONE_HOST_DEVICE constexpr GemvPlan planGatedGemv(int64_t rows, int64_t outputs, int64_t chunks, int32_t warps,
                                                  int32_t multiprocessors) {
  GemvPlan plan = planGemv(rows, 32 * divideUp(outputs, 16), chunks, warps, multiprocessors);
  plan.rowTiles = 2;
  plan.blocks = divideUp(outputs, 16);
  plan.slices = plan.slices < mostSlices(2) ? plan.slices : mostSlices(2);
  while (plan.slices > 2 && plan.blocks * plan.slices * 2 > int64_t{warps} * multiprocessors)
    plan.slices /= 2;
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

/// The same for a gate and an up layer: a half of a block's groups are those of each.
HONE_HOST_DEVICE constexpr GemvFmaPlan planGatedGemvFma(int64_t rows, int64_t outputs, int64_t inputs,
                                                        int32_t multiprocessors) {
  GemvFmaPlan plan = planGemvFma(rows, 2 * outputs, inputs, multiprocessors);
  if (plan.groups == 1)
    plan.groups = 2, plan.slices /= 2;
  plan.blocks = divideUp(outputs, int64_t{kGemvFmaOutputs} * plan.groups / 2);
  return plan;
}

HONE_HOST_DEVICE constexpr int64_t gemvFmaSharedBytes(const GemvFmaPlan &plan) {
  return int64_t{4} * plan.slices * plan.groups * kGemvFmaOutputs * plan.rowsAtOnce;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_GEMV_H
