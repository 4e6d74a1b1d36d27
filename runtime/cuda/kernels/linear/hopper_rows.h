// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plan of layers of many rows on sm_90a: tiles, and where they lie in shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_ROWS_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_ROWS_H

#include "hopper_sums.h"
#include "many_rows.h"

namespace hone::cuda {

/// A block has 128 rows, 64 for each of two warpgroups, and 256 outputs; a stage holds 64 inputs of both.
constexpr int32_t kHopperTileRows = 128, kHopperTileOutputs = 256, kHopperDepth = 64, kHopperRowsStages = 4;
constexpr int32_t kHopperRowsThreads = 384;

struct HopperRowsArguments {
  ManyRowsArguments layer;
  int32_t products; // of planes: x · W, then the rest of x · W, then x · the rest of W
};

/// The inputs and planes that a step multiplies.
struct HopperStep {
  int32_t input, xPlane, weightPlane;
};

HONE_HOST_DEVICE constexpr int32_t hopperSteps(int64_t depth, int32_t products) {
  return static_cast<int32_t>(divideUp(depth, kHopperDepth)) * products;
}

/// Steps of a product of planes follow each other, from the first input to the last.
HONE_HOST_DEVICE constexpr HopperStep hopperStep(int32_t step, int64_t depth) {
  auto perProduct = static_cast<int32_t>(divideUp(depth, kHopperDepth));
  int32_t product = step / perProduct;
  return {step % perProduct * kHopperDepth, product == 1 ? 1 : 0, product == 2 ? 1 : 0};
}

constexpr int32_t kHopperXBytes = kHopperTileRows * kHopperDepth * 2;
constexpr int32_t kHopperStageBytes = kHopperXBytes + kHopperTileOutputs * kHopperDepth * 2;
/// Stages, the sums that both warpgroups are finishing, and two barriers for each stage.
constexpr int32_t kHopperRowsSums = kHopperRowsStages * kHopperStageBytes;
constexpr int32_t kHopperRowsBarriers = kHopperRowsSums + 2 * kPieceBytes;
constexpr int32_t kHopperRowsBytes = kHopperRowsBarriers + kHopperRowsStages * 2 * 8;

struct DeviceLimits;
struct Planes;
class KernelDevice;

/// Whether the chip has the kernel, and its tiles keep at least half of the multiprocessors busy.
bool fitsHopperRows(const DeviceLimits &limits, const LinearArguments &layer);
void runHopperRows(KernelDevice &device, const ManyRowsArguments &args, const Planes &planes);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_ROWS_H
