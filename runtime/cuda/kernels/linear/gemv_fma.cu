// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMV by weights of f32, and of f16 with inputs that f16 cannot represent.

#include "../device/gemv_fma_kernel.h"

#define HONE_GEMV_FMA(name, weight, rows)                                                                              \
  extern "C" __global__ void __launch_bounds__(256, 1)                                                                 \
      name(const __grid_constant__ hone::cuda::LinearArguments args) {                                                 \
    extern __shared__ float shared[];                                                                                  \
    hone::cuda::GemvFma<hone::cuda::weight, rows>(args, blockIdx.y).run(shared);                                       \
  }

HONE_GEMV_FMA(gemv_fma_f32_1, FmaWeight<false>, 1)
HONE_GEMV_FMA(gemv_fma_f32_4, FmaWeight<false>, 4)
HONE_GEMV_FMA(gemv_fma_f32_16, FmaWeight<false>, 16)
HONE_GEMV_FMA(gemv_fma_f16_1, FmaWeight<true>, 1)
HONE_GEMV_FMA(gemv_fma_f16_4, FmaWeight<true>, 4)
HONE_GEMV_FMA(gemv_fma_f16_16, FmaWeight<true>, 16)
HONE_GEMV_FMA(sparse_gemv_fma_f32_1, SparseFmaWeight<false>, 1)
HONE_GEMV_FMA(sparse_gemv_fma_f32_4, SparseFmaWeight<false>, 4)
HONE_GEMV_FMA(sparse_gemv_fma_f32_16, SparseFmaWeight<false>, 16)
HONE_GEMV_FMA(sparse_gemv_fma_f16_1, SparseFmaWeight<true>, 1)
HONE_GEMV_FMA(sparse_gemv_fma_f16_4, SparseFmaWeight<true>, 4)
HONE_GEMV_FMA(sparse_gemv_fma_f16_16, SparseFmaWeight<true>, 16)

#define HONE_GEMV_FMA_LAYERS(name, weight, rows)                                                                       \
  extern "C" __global__ void __launch_bounds__(256, 1)                                                                 \
      name##_siblings_##rows(const __grid_constant__ hone::cuda::LinearLayers args) {                                  \
    extern __shared__ float shared[];                                                                                  \
    const auto &own = args.layers[args.layerOf(blockIdx.x)];                                                           \
    hone::cuda::GemvFma<hone::cuda::weight, rows>(args.layers[0], own, args.blockOf(blockIdx.x), blockIdx.y)           \
        .run(shared);                                                                                                  \
  }                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(256, 1)                                                                 \
      name##_gated_##rows(const __grid_constant__ hone::cuda::LinearLayers args) {                                     \
    extern __shared__ float shared[];                                                                                  \
    using GemvFma = hone::cuda::GemvFma<hone::cuda::weight, rows, hone::cuda::LinearArguments, true>;                  \
    GemvFma gemv(args.layers[0], args.layers[1], blockIdx.x, blockIdx.y);                                              \
    gemv.multiply(shared);                                                                                             \
    hone::cuda::reduceGated(args, shared, rows, gemv.outputsOfBlock(), rows * blockIdx.y,                              \
                            gemv.outputsOfBlock() * blockIdx.x);                                                       \
  }

HONE_GEMV_FMA_LAYERS(gemv_fma_f32, FmaWeight<false>, 1)
HONE_GEMV_FMA_LAYERS(gemv_fma_f32, FmaWeight<false>, 4)
HONE_GEMV_FMA_LAYERS(gemv_fma_f32, FmaWeight<false>, 16)
HONE_GEMV_FMA_LAYERS(gemv_fma_f16, FmaWeight<true>, 1)
HONE_GEMV_FMA_LAYERS(gemv_fma_f16, FmaWeight<true>, 4)
HONE_GEMV_FMA_LAYERS(gemv_fma_f16, FmaWeight<true>, 16)
