// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Formats of weights.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_FORMAT_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_FORMAT_H

#include "linear_arguments.h"

namespace hone::cuda {

/// Numbers, or levels of so many bits as #hone.affine lays them out.
enum class Format { F32, F16, Bf16, Affine8, Affine4, Affine3, Affine2 };

constexpr bool hasLevels(Format format) { return format >= Format::Affine8; }

class KernelDevice;

/// Layers of up to this many rows read weights once for every 16 rows; those of more multiply tiles, and memory waits for them.
constexpr int64_t kFewRows = 32;

/// Enqueues a layer; rows and outputs are at least one.
void runFewRows(KernelDevice &device, Format format, LinearArguments layer);
void runManyRows(KernelDevice &device, Format format, LinearArguments layer);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_FORMAT_H
