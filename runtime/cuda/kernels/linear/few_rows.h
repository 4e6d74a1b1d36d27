// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers of a few rows: the plan of a launch.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_FEW_ROWS_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_FEW_ROWS_H

#include "linear_arguments.h"

namespace hone::cuda {

constexpr int32_t kPartInputs = 32; // inputs that four lanes take as 16 bytes of bf16

/// How many warps a block has at most. Two tiles of outputs take more than 128 registers a lane.
HONE_HOST_DEVICE constexpr int32_t mostSlices(int32_t rowTiles) { return rowTiles == 2 ? 8 : 16; }

/// How a kernel that multiplies in matrix units divides its work: a block has rowTiles · 16 outputs and columnTiles · 8 rows
/// of x, and its warps, `slices` of them, take turns at the chunks of the inputs.
struct FewRowsPlan {
  int32_t rowTiles, columnTiles, slices;
  int64_t blocks; // along the outputs
};

/// `chunks`: pieces of inputs that a warp reads at once; `convertsInputs`: whether inputs are split into two numbers of
/// bf16 on the way, which is dear beside weights of few bits, so that two tiles share it.
///
/// Memory is what takes time, so that each multiprocessor shall have 32 warps or, where there is less work, all there is:
/// a warp keeps 4 KiB of weights on the way (few_rows_kernel.h), and 4.8 TB/s · 0.8 µs on 132 multiprocessors are 29 KiB each.
HONE_HOST_DEVICE constexpr FewRowsPlan planFewRows(int64_t rows, int64_t outputs, int64_t chunks, bool convertsInputs,
                                                   int32_t multiprocessors) {
  FewRowsPlan plan = {1, rows > 8 ? 2 : 1, 4, 0};
  int64_t pairs = divideUp(outputs, 32);
  if (plan.columnTiles == 2 || pairs >= 4 * multiprocessors || (convertsInputs && pairs >= multiprocessors))
    plan.rowTiles = 2;
  plan.blocks = divideUp(outputs, 16 * plan.rowTiles);
  while (plan.slices < mostSlices(plan.rowTiles) && plan.slices * 2 <= chunks &&
         plan.blocks * plan.slices < int64_t{32} * multiprocessors)
    plan.slices *= 2;
  return plan;
}

/// Bytes of shared memory in which the warps of a block leave their sums.
HONE_HOST_DEVICE constexpr int64_t fewRowsSharedBytes(const FewRowsPlan &plan) {
  return int64_t{4} * plan.slices * plan.rowTiles * 16 * plan.columnTiles * 8;
}

/// How many blocks share outputs and divide the inputs, where those of a launch have a quarter of the multiprocessors or fewer. Each warp
/// keeps eight of its `chunks` at least: sums go to memory and back, which takes about as long as two launches.
HONE_HOST_DEVICE constexpr int32_t planRowSplits(int64_t blocks, int64_t chunks, int32_t multiprocessors) {
  constexpr int64_t kFewestChunks = 8;
  if (blocks * 4 > multiprocessors)
    return 1;
  int64_t room = multiprocessors / blocks, most = chunks / kFewestChunks;
  int64_t splits = room < most ? room : most;
  return splits < 1 ? 1 : static_cast<int32_t>(splits);
}

constexpr int32_t kExactOutputs = 4;  // of a warp of the kernel without matrix units
constexpr int32_t kExactInputs = 128; // that a warp reads at once: four a lane

/// The same for the kernel without matrix units: a block has `groups` · 4 outputs, `groups` · slices warps and `rowsAtOnce`
/// rows of x.
struct ExactRowsPlan {
  int32_t rowsAtOnce, groups, slices;
  int64_t blocks;
};

HONE_HOST_DEVICE constexpr ExactRowsPlan planExactRows(int64_t rows, int64_t outputs, int64_t inputs,
                                                       int32_t multiprocessors) {
  ExactRowsPlan plan = {rows > 4 ? 16 : rows > 1 ? 4 : 1, 8, 1, 0};
  while (plan.groups > 1 && divideUp(outputs, kExactOutputs * plan.groups) * 8 < int64_t{16} * multiprocessors &&
         plan.slices * 2 * kExactInputs <= inputs) {
    plan.groups /= 2;
    plan.slices *= 2;
  }
  plan.blocks = divideUp(outputs, int64_t{kExactOutputs} * plan.groups);
  return plan;
}

HONE_HOST_DEVICE constexpr int64_t exactRowsSharedBytes(const ExactRowsPlan &plan) {
  return int64_t{4} * plan.slices * plan.groups * kExactOutputs * plan.rowsAtOnce;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_FEW_ROWS_H
