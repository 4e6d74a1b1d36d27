// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What follows products that a library computed, or that several blocks share: their sum, bias, activation, factor and residual.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_FINISH_SUMS_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_FINISH_SUMS_H

#include "linear_arguments.h"

namespace hone::cuda {

constexpr int32_t kFinishThreads = 256;

/// y of the layer from sums of f32, which may be y where they are one part.
struct FinishSumsArguments {
  LinearArguments linear;
  const float *sums;
  int64_t stride;     // from a row of sums to the next
  int64_t partStride; // from a part of all sums to the next
  int32_t parts;
};

class KernelDevice;

void finishSums(KernelDevice &device, const FinishSumsArguments &args);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_FINISH_SUMS_H
