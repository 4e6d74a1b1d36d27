// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers of many rows.

#include "../device/many_rows_kernel.h"

#define HONE_MANY_ROWS(name, isHalf, tileRows, xPlanes, weightPlanes)                                                  \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kManyRowsThreads, 1)                                        \
      name(const __grid_constant__ hone::cuda::ManyRowsArguments args) {                                               \
    extern __shared__ __align__(128) char manyRowsShared[];                                                            \
    hone::cuda::TilePlace place =                                                                                      \
        hone::cuda::tileOfBlock(blockIdx.x, hone::cuda::divideUp(args.linear.rows, tileRows),                          \
                                hone::cuda::divideUp(args.linear.outputs, hone::cuda::kTileOutputs));                  \
    hone::cuda::ManyRows<isHalf, tileRows, xPlanes, weightPlanes>(args, place, manyRowsShared).run();                  \
  }

HONE_MANY_ROWS(many_rows_f16_64, true, 64, 1, 1)
HONE_MANY_ROWS(many_rows_f16_128, true, 128, 1, 1)
HONE_MANY_ROWS(many_rows_bf16_64, false, 64, 1, 1)
HONE_MANY_ROWS(many_rows_bf16_128, false, 128, 1, 1)
HONE_MANY_ROWS(many_rows_split_64, false, 64, 2, 1)
HONE_MANY_ROWS(many_rows_split_128, false, 128, 2, 1)
HONE_MANY_ROWS(many_rows_double_64, false, 64, 2, 2)
HONE_MANY_ROWS(many_rows_double_128, false, 128, 2, 2)
