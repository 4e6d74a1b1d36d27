// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reduction of split-K, and the epilogue: after products of a library, or of several blocks.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_REDUCE_EPILOGUE_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_REDUCE_EPILOGUE_H

#include "linear_arguments.h"

namespace hone::cuda {

constexpr int32_t kReduceThreads = 256;

/// y of the layer from f32 sums, which may be y itself where there is one part.
struct ReduceEpilogueArguments {
  LinearArguments linear;
  const float *sums;
  int64_t stride;     // of the rows of sums
  int64_t partStride; // of the partial sums
  int32_t parts;
};

class KernelDevice;

void reduceEpilogue(KernelDevice &device, const ReduceEpilogueArguments &args);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_REDUCE_EPILOGUE_H
