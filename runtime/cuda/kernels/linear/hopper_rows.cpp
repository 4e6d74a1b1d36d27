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

int64_t blocksOf(const LinearArguments &layer) {
  return divideUp(layer.rows, kHopperTileRows) * divideUp(layer.outputs, kHopperTileOutputs);
}

TensorMap mapOf(KernelDevice &device, const PlaneView &view, int32_t type, int64_t depth, int64_t rows, int32_t planes,
                int32_t boxRows) {
  // Along an axis of one index any multiple of 16 bytes will do.
  auto bytes = [](int64_t stride) { return static_cast<uint64_t>(stride > 0 ? stride : 16); };
  return device.mapOf({const_cast<char *>(view.data),
                       type,
                       {static_cast<uint64_t>(depth), static_cast<uint64_t>(rows), static_cast<uint64_t>(planes), 1},
                       {bytes(view.rowBytes), bytes(view.planeBytes), bytes(0)},
                       static_cast<uint32_t>(boxRows)});
}

} // namespace

bool fitsHopperRows(const DeviceLimits &limits, const LinearArguments &layer) {
  return limits.chip == 90 && layer.rows > kHopperTileRows / 2 && layer.inputs > 0 &&
         2 * blocksOf(layer) >= limits.multiprocessors;
}

void runHopperRows(KernelDevice &device, const ManyRowsArguments &args, const Planes &planes) {
  HopperRowsArguments all = {args, planes.x + planes.weight - 1};
  const LinearArguments &layer = args.linear;
  TensorMap x = mapOf(device, args.x, planes.type, args.depth, layer.rows, planes.x, kHopperTileRows);
  TensorMap weight =
      mapOf(device, args.weight, planes.type, args.depth, layer.outputs, planes.weight, kHopperTileOutputs);
  void *pointers[] = {&all, &x, &weight};
  device.launch({kHopperRowsFatbin, planes.type == HONE_F16 ? "hopper_rows_f16" : "hopper_rows_bf16"},
                {{static_cast<uint32_t>(blocksOf(layer)), 1, 1},
                 {kHopperRowsThreads, 1, 1},
                 static_cast<uint32_t>(kHopperRowsBytes)},
                pointers);
}

} // namespace hone::cuda
