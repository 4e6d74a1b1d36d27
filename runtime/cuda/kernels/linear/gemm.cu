// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM: linear layers with large M.

#include "../device/gemm_kernel.h"

#define HONE_GEMM(name, isHalf, tileRows, xPlanes, weightPlanes)                                                       \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kGemmThreads, 1)                                            \
      name(const __grid_constant__ hone::cuda::GemmArguments args) {                                                   \
    extern __shared__ __align__(128) char gemmShared[];                                                                \
    hone::cuda::TileIndex index =                                                                                      \
        hone::cuda::tileOfBlock(blockIdx.x, hone::cuda::divideUp(args.linear.rows, tileRows),                          \
                                hone::cuda::divideUp(args.linear.outputs, hone::cuda::kTileOutputs));                  \
    hone::cuda::Gemm<isHalf, tileRows, xPlanes, weightPlanes>(args, index, gemmShared).run();                          \
  }

HONE_GEMM(gemm_f16_64, true, 64, 1, 1)
HONE_GEMM(gemm_f16_128, true, 128, 1, 1)
HONE_GEMM(gemm_bf16_64, false, 64, 1, 1)
HONE_GEMM(gemm_bf16_128, false, 128, 1, 1)
HONE_GEMM(gemm_split_64, false, 64, 2, 1)
HONE_GEMM(gemm_split_128, false, 128, 2, 1)
HONE_GEMM(gemm_double_64, false, 64, 2, 2)
HONE_GEMM(gemm_double_128, false, 128, 2, 2)
