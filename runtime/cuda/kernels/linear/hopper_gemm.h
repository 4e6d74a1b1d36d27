// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM on sm_90a: tiles and the layout of shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_GEMM_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_GEMM_H

#include "gemm.h"
#include "hopper_epilogue.h"

namespace hone::cuda {

/// A block has 128 rows, 64 of each of two consumer warpgroups, and 256 outputs; a stage holds 64 inputs of both.
constexpr int32_t kHopperGemmRows = 128, kHopperGemmOutputs = 256, kHopperGemmDepth = 64, kHopperGemmStages = 4;
constexpr int32_t kHopperGemmThreads = 384;

struct HopperGemmArguments {
  GemmArguments layer;
  int32_t products; // of planes: hi x · hi W, then lo x · hi W, then hi x · lo W
};

/// The inputs and planes of a step.
struct HopperGemmStep {
  int32_t input, xPlane, weightPlane;
};

HONE_HOST_DEVICE constexpr int32_t hopperGemmSteps(int64_t depth, int32_t products) {
  return static_cast<int32_t>(divideUp(depth, kHopperGemmDepth)) * products;
}

/// The steps of one product of planes are consecutive.
HONE_HOST_DEVICE constexpr HopperGemmStep hopperGemmStep(int32_t step, int64_t depth) {
  auto perProduct = static_cast<int32_t>(divideUp(depth, kHopperGemmDepth));
  int32_t product = step / perProduct;
  return {step % perProduct * kHopperGemmDepth, product == 1 ? 1 : 0, product == 2 ? 1 : 0};
}

constexpr int32_t kHopperGemmXBytes = kHopperGemmRows * kHopperGemmDepth * 2;
constexpr int32_t kHopperGemmStageBytes = kHopperGemmXBytes + kHopperGemmOutputs * kHopperGemmDepth * 2;
/// Stages, a staging tile of each consumer warpgroup, and two mbarriers of each stage.
constexpr int32_t kHopperGemmStaging = kHopperGemmStages * kHopperGemmStageBytes;
constexpr int32_t kHopperGemmBarriers = kHopperGemmStaging + 2 * kStagingBytes;
constexpr int32_t kHopperGemmBytes = kHopperGemmBarriers + kHopperGemmStages * 2 * 8;

struct DeviceLimits;
struct Planes;
class KernelDevice;

/// Whether the chip has the kernel, dense or for 2:4 weights, and its tiles occupy at least half of the SMs.
bool fitsHopperGemm(const DeviceLimits &limits, const LinearArguments &layer);
void runHopperGemm(KernelDevice &device, const GemmArguments &args, const Planes &planes);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_GEMM_H
