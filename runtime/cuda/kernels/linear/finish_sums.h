// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What follows products that a library computed: bias, activation, factor and residual.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_FINISH_SUMS_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_FINISH_SUMS_H

#include "linear_arguments.h"

namespace hone::cuda {

constexpr int32_t kFinishThreads = 256;

/// y of the layer from sums of f32, which may be y.
struct FinishSumsArguments {
  LinearArguments linear;
  const float *sums;
  int64_t stride; // from a row of sums to the next
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_FINISH_SUMS_H
