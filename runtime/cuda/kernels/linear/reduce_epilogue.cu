// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The epilogue after a library's GEMM, or after a split-K kernel, whose partial sums it adds in order.

#include "../device/epilogue.h"
#include "../device/overlap.h"
#include "reduce_epilogue.h"

extern "C" __global__ void __launch_bounds__(hone::cuda::kReduceThreads)
    reduce_epilogue(const __grid_constant__ hone::cuda::ReduceEpilogueArguments args) {
  using namespace hone::cuda;
  enterInOrder();
  int64_t output = int64_t{kReduceThreads} * blockIdx.x + threadIdx.x;
  if (output >= args.linear.outputs)
    return;
  for (int64_t row = blockIdx.y; row < args.linear.rows; row += gridDim.y) {
    float sum = 0;
    for (int32_t part = 0; part < args.parts; ++part)
      sum += args.sums[part * args.partStride + row * args.stride + output];
    storeOutput(args.linear, sum, row, output);
  }
}
