// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The target `cuda`: an NVIDIA GPU and its driver.

#ifndef HONE_RUNTIME_CUDA_OPEN_DEVICE_H
#define HONE_RUNTIME_CUDA_OPEN_DEVICE_H

#include "core/device.h"

namespace hone::rt::cuda {

/// Opens the GPU, loads the kernels and copies the weights. Fails, in one sentence, without a driver, with one that is too old,
/// without a GPU, with one that cannot run the kernels, and where the weights do not fit; for one of several ranks also as chooseGpu
/// does and without NCCL (cuda/ranks/).
absl::StatusOr<std::unique_ptr<Device>> openDevice(const DeviceSource &source);

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_OPEN_DEVICE_H
