// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of the selection of blocks.

#include "select_blocks.h"
#include "../entry.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"

#include <algorithm>

namespace hone::cuda {
namespace {

using Call = kernels::Call<kernels::SelectBlocks, kernels::NoWeight>;

SelectBlocksArguments argumentsOf(const Call &call) {
  const auto &o = call.operands;
  SelectBlocksArguments args = {};
  args.query = rowsOf(o.query);
  args.pooled = {matricesOf(o.pooled), o.pooled.sizes[2], call.ints.size, call.ints.size,
                 static_cast<int32_t>(o.pooled.sizes[3])};
  args.begin = kernels::viewIntegers<2>(o.begin);
  args.end = kernels::viewIntegers<2>(o.end);
  args.blocks = static_cast<int64_t *>(o.blocks.data);
  std::copy_n(o.blocks.strides, 4, args.blockStrides);
  args.heads = o.blocks.sizes[1];
  args.queryHeads = o.query.sizes[1];
  args.queries = o.query.sizes[2];
  args.group = static_cast<int32_t>(args.queryHeads / args.heads);
  args.size = static_cast<int32_t>(o.query.sizes[3]);
  args.places = static_cast<int32_t>(o.blocks.sizes[3]);
  args.scale = static_cast<float>(call.floats.scale);
  return args;
}

/// Whether the elements of a pooled key lie beside each other.
bool isDense(const PooledView &pooled) {
  return pooled.matrices.rowStride == pooled.width && pooled.matrices.rows.inner == 1;
}

/// The pooled keys of `blocks` blocks of each matrix as one row each, in memory that the caller releases.
PooledView gatherPooled(KernelDevice &device, const PooledView &from, int64_t matrices, int64_t blocks, int32_t size) {
  int64_t count = matrices * blocks * size;
  auto *to = static_cast<float *>(device.acquire(static_cast<uint64_t>(count) * sizeof(float)));
  GatherPooledArguments args = {from, to, matrices, blocks, size};
  void *pointers[] = {&args};
  device.launch({kSelectBlocksFatbin, "gather_pooled"},
                {{static_cast<uint32_t>(divideUp(count, kGatherThreads)), 1, 1}, {kGatherThreads, 1, 1}, 0}, pointers);
  RowView rows = {reinterpret_cast<char *>(to), HONE_F32, 1, size, 1, {1, matrices * blocks}, {0, 0, size}};
  return {{rows, size}, blocks, 0, 1, size};
}

/// Scores and importance of the rows of a launch lie in memory of the device.
void selectInParts(KernelDevice &device, SelectBlocksArguments args, const SelectionPlan &plan, int64_t rows) {
  int64_t scores = plan.rowsAtOnce * args.group * plan.room;
  args.scores =
      static_cast<float *>(device.acquire(static_cast<uint64_t>(scores + plan.rowsAtOnce * plan.room) * sizeof(float)));
  args.importance = args.scores + scores;
  void *pointers[] = {&args};
  for (; args.firstRow < rows; args.firstRow += plan.rowsAtOnce) {
    auto count = static_cast<uint32_t>(std::min(plan.rowsAtOnce, rows - args.firstRow));
    device.launch({kSelectBlocksFatbin, "score_blocks"},
                  {{count, static_cast<uint32_t>(plan.splits), 1},
                   {32 * kSelectWarps, 1, 1},
                   static_cast<uint32_t>(scoringSharedBytes(args.size))},
                  pointers);
    device.launch({kSelectBlocksFatbin, "select_blocks"}, {{count, 1, 1}, {32 * kSelectWarps, 1, 1}, 0}, pointers);
  }
  device.release(args.scores);
}

void select(KernelDevice &device, SelectBlocksArguments args, const SelectionPlan &plan, int64_t rows) {
  args.room = plan.room;
  if (plan.splits > 0)
    return selectInParts(device, args, plan, rows);
  void *pointers[] = {&args};
  device.launch({kSelectBlocksFatbin, "select_blocks"},
                {{static_cast<uint32_t>(rows), 1, 1},
                 {32 * kSelectWarps, 1, 1},
                 static_cast<uint32_t>(selectionSharedBytes(args.size, args.room))},
                pointers);
}

void run(hone_call *call, const Call &selection) {
  const hone_tensor &blocks = selection.operands.blocks;
  if (isAbsent(blocks))
    return;
  SelectBlocksArguments args = argumentsOf(selection);
  KernelDevice &device = kernelDevice(call);
  int64_t rows = countRows(blocks), most = std::max<int64_t>(args.pooled.rows / args.pooled.blockRows - 1, 0);
  SelectionPlan plan = planSelection(rows, args.group, most, args.size, device.limits().multiprocessors);
  bool isGathered = args.queries >= kFewestGatheringQueries && most > 0 && !isDense(args.pooled);
  if (isGathered)
    args.pooled = gatherPooled(device, args.pooled, blocks.sizes[0] * args.heads, most, args.size);
  select(device, args, plan, rows);
  if (isGathered)
    device.release(args.pooled.matrices.rows.data);
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cuda/select_blocks.def"
#undef HONE_KERNEL

} // namespace hone::cuda
