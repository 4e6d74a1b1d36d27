// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last step of layers whose products a library computed, or blocks in parts, which are added in their order.

#include "../device/finish_rows.h"
#include "finish_sums.h"

extern "C" __global__ void __launch_bounds__(hone::cuda::kFinishThreads)
    finish_sums(const __grid_constant__ hone::cuda::FinishSumsArguments args) {
  using namespace hone::cuda;
  int64_t output = int64_t{kFinishThreads} * blockIdx.x + threadIdx.x;
  if (output >= args.linear.outputs)
    return;
  for (int64_t row = blockIdx.y; row < args.linear.rows; row += gridDim.y) {
    float sum = 0;
    for (int32_t part = 0; part < args.parts; ++part)
      sum += args.sums[part * args.partStride + row * args.stride + output];
    finishNumber(args.linear, sum, row, output);
  }
}
