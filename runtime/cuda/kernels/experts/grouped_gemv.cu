// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Grouped GEMV: layers of experts with small M.

#include "../device/expert_tile.h"
#include "../device/gemv_fma_kernel.h"
#include "../device/gemv_kernel.h"

#define HONE_GROUPED_KERNEL(name, tileRows, ...)                                                                       \
  extern "C" __global__ void __launch_bounds__(32 * hone::cuda::kExpertSlices, 1)                                      \
      name(const __grid_constant__ hone::cuda::ExpertLayers args) {                                                    \
    extern __shared__ float shared[];                                                                                  \
    __shared__ hone::cuda::ExpertLayer layer;                                                                          \
    int32_t rowTile = 0;                                                                                               \
    if (hone::cuda::enterExpert(args, tileRows, blockIdx.y, layer, rowTile))                                           \
      hone::cuda::__VA_ARGS__(layer, rowTile).run(shared);                                                             \
  }

#define HONE_GROUPED_GEMV(name, weight, split, rowTiles, columnTiles)                                                  \
  HONE_GROUPED_KERNEL(name, 8 * columnTiles,                                                                           \
                      Gemv<hone::cuda::weight, split, rowTiles, columnTiles, hone::cuda::ExpertLayer>)

#define HONE_GROUPED_GEMV_TILES(name, weight, split)                                                                   \
  HONE_GROUPED_GEMV(name##_1x1, weight, split, 1, 1)                                                                   \
  HONE_GROUPED_GEMV(name##_2x1, weight, split, 2, 1)                                                                   \
  HONE_GROUPED_GEMV(name##_2x2, weight, split, 2, 2)

HONE_GROUPED_GEMV_TILES(grouped_gemv_f16, DenseWeight<true>, false)
HONE_GROUPED_GEMV_TILES(grouped_gemv_bf16, DenseWeight<false>, false)
HONE_GROUPED_GEMV_TILES(grouped_gemv_bf16_split, DenseWeight<false>, true)
HONE_GROUPED_GEMV_TILES(grouped_gemv_affine8, AffineWeight<8>, false)
HONE_GROUPED_GEMV_TILES(grouped_gemv_affine8_split, AffineWeight<8>, true)
HONE_GROUPED_GEMV_TILES(grouped_gemv_affine4, AffineWeight<4>, false)
HONE_GROUPED_GEMV_TILES(grouped_gemv_affine4_split, AffineWeight<4>, true)
HONE_GROUPED_GEMV_TILES(grouped_gemv_affine6, AffineWeight<6>, false)
HONE_GROUPED_GEMV_TILES(grouped_gemv_affine6_split, AffineWeight<6>, true)
HONE_GROUPED_GEMV_TILES(grouped_gemv_affine5, AffineWeight<5>, false)
HONE_GROUPED_GEMV_TILES(grouped_gemv_affine5_split, AffineWeight<5>, true)
HONE_GROUPED_GEMV_TILES(grouped_gemv_affine3, AffineWeight<3>, false)
HONE_GROUPED_GEMV_TILES(grouped_gemv_affine3_split, AffineWeight<3>, true)
HONE_GROUPED_GEMV_TILES(grouped_gemv_affine2, AffineWeight<2>, false)
HONE_GROUPED_GEMV_TILES(grouped_gemv_affine2_split, AffineWeight<2>, true)

#define HONE_GROUPED_GEMV_FMA(name, isHalf, rows)                                                                      \
  HONE_GROUPED_KERNEL(name, rows, GemvFma<hone::cuda::FmaWeight<isHalf>, rows, hone::cuda::ExpertLayer>)

HONE_GROUPED_GEMV_FMA(grouped_gemv_fma_f32_1, false, 1)
HONE_GROUPED_GEMV_FMA(grouped_gemv_fma_f32_4, false, 4)
HONE_GROUPED_GEMV_FMA(grouped_gemv_fma_f32_16, false, 16)
HONE_GROUPED_GEMV_FMA(grouped_gemv_fma_f16_1, true, 1)
HONE_GROUPED_GEMV_FMA(grouped_gemv_fma_f16_4, true, 4)
HONE_GROUPED_GEMV_FMA(grouped_gemv_fma_f16_16, true, 16)
