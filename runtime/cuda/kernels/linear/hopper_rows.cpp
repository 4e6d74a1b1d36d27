// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of layers of many rows on sm_90a.

#include "hopper_rows.h"

#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "planes.h"

namespace hone::cuda {
namespace {

int64_t tilesOf(const LinearArguments &layer) {
  return divideUp(layer.rows, kHopperTileRows) * divideUp(layer.outputs, kHopperTileOutputs);
}

} // namespace

bool fitsHopperRows(const DeviceLimits &limits, const LinearArguments &layer) {
  return limits.chip == 90 && layer.rows > kHopperTileRows / 2 && layer.inputs > 0 &&
         2 * tilesOf(layer) >= limits.multiprocessors;
}

void runHopperRows(KernelDevice &device, const ManyRowsArguments &args, const Planes &planes) {
  static constexpr const char *names[2][2] = {{"hopper_rows_f16", "hopper_rows_pair_f16"},
                                              {"hopper_rows_bf16", "hopper_rows_pair_bf16"}};
  HopperRowsArguments all = {args, planes.x + planes.weight - 1};
  const LinearArguments &layer = args.linear;
  bool isPaired = arePaired(divideUp(layer.rows, kHopperTileRows));
  TensorMap x = mapOfPlanes(device, args.x, {planes.type, args.depth, layer.rows, planes.x}, kHopperTileRows);
  TensorMap weight = mapOfPlanes(device, args.weight, {planes.type, args.depth, layer.outputs, planes.weight},
                                 isPaired ? kHopperTileOutputs / 2 : kHopperTileOutputs);
  void *pointers[] = {&all, &x, &weight};
  device.launch({kHopperRowsFatbin, names[planes.type != HONE_F16][isPaired]},
                {{blocksToLaunch(tilesOf(layer), isPaired, device.limits().multiprocessors), 1, 1},
                 {kHopperRowsThreads, 1, 1},
                 static_cast<uint32_t>(kHopperRowsBytes)},
                pointers);
}

} // namespace hone::cuda
