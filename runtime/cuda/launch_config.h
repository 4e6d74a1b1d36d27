// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the driver is asked to launch a kernel.

#ifndef HONE_RUNTIME_CUDA_LAUNCH_CONFIG_H
#define HONE_RUNTIME_CUDA_LAUNCH_CONFIG_H

#include "cuda/driver_types.h"
#include "cuda/kernels/kernel_device.h"

namespace hone::rt::cuda {

/// What cuLaunchKernelEx takes. A dependent kernel may be launched before the work before it has ended, where the chip has that.
struct LaunchConfig {
  LaunchConfig(const hone::cuda::LaunchShape &shape, CUstream stream, bool isDependent, int capability) {
    const auto &[grid, block, shared] = shape;
    bool isEarly = isDependent && capability >= hone::cuda::kFirstChipOfDependentLaunch;
    early.value.programmaticStreamSerializationAllowed = 1;
    all = {grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, &early, isEarly ? 1u : 0u};
  }
  LaunchConfig(const LaunchConfig &) = delete;
  LaunchConfig &operator=(const LaunchConfig &) = delete;

  CUlaunchAttribute early = {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, {}, {}};
  CUlaunchConfig all;
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_LAUNCH_CONFIG_H
