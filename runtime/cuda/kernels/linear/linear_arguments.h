// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What host and device say to each other about a linear layer.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_ARGUMENTS_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_ARGUMENTS_H

#include "../row_view.h"

namespace hone::cuda {

/// The one argument of every linear kernel: y = act(x · Wᵀ + bias) · factor + residual.
struct LinearArguments {
  RowView x, factor, residual, y;
  const char *weight, *scales, *bias; // bias null where absent
  const uint8_t *zeros;               // null: the middle level
  int64_t weightStride;               // bytes from an output to the next
  int64_t rows, outputs, inputs;
  int32_t biasType, scaleType; // hone_dtype
  int32_t groups;              // scales of an output
  int32_t group;               // inputs that share a scale; 0: all
  int32_t activation;
  int32_t slices; // warps of a block that share the outputs and divide the inputs
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_ARGUMENTS_H
