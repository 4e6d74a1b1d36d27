// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of layers of many rows by 2:4 weights on sm_90a.

#include "hopper_sparse_rows.h"

#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "planes.h"

namespace hone::cuda {

static int64_t tilesOf(const LinearArguments &layer) {
  return divideUp(layer.rows, kHopperSparseRows) * divideUp(layer.outputs, kHopperSparseOutputs);
}

bool fitsHopperSparseRows(const DeviceLimits &limits, const LinearArguments &layer) {
  return limits.chip == 90 && layer.rows > kHopperSparseRows / 2 && layer.inputs > 0 &&
         2 * tilesOf(layer) >= limits.multiprocessors;
}

void runHopperSparseRows(KernelDevice &device, const ManyRowsArguments &args, const Planes &planes) {
  static constexpr const char *names[2][2] = {{"hopper_sparse_rows_f16", "hopper_sparse_rows_pair_f16"},
                                              {"hopper_sparse_rows_bf16", "hopper_sparse_rows_pair_bf16"}};
  HopperSparseRowsArguments all = {args, planes.x + planes.weight - 1};
  const LinearArguments &layer = args.linear;
  bool isPaired = arePaired(divideUp(layer.outputs, kHopperSparseOutputs));
  TensorMap x = mapOfPlanes(device, args.x, {planes.type, args.depth, layer.rows, planes.x},
                            isPaired ? kHopperSparseRows / 2 : kHopperSparseRows);
  TensorMap weight = mapOfPlanes(device, args.weight, {planes.type, args.depth / 2, layer.outputs, planes.weight},
                                 kHopperSparseOutputs, kHopperSparseKept);
  void *pointers[] = {&all, &x, &weight};
  device.launch({kHopperSparseRowsFatbin, names[planes.type != HONE_F16][isPaired]},
                {{blocksToLaunch(tilesOf(layer), isPaired, device.limits().multiprocessors), 1, 1},
                 {kHopperSparseThreads, 1, 1},
                 static_cast<uint32_t>(kHopperSparseBytes)},
                pointers);
}

} // namespace hone::cuda
