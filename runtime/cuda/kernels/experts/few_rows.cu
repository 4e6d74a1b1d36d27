// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of experts that have few rows each.

#include "../device/exact_rows_kernel.h"
#include "../device/expert_tile.h"
#include "../device/few_rows_kernel.h"

#define HONE_EXPERT_ROWS(name, tileRows, ...)                                                                          \
  extern "C" __global__ void __launch_bounds__(32 * hone::cuda::kExpertSlices, 1)                                      \
      name(const __grid_constant__ hone::cuda::ExpertLayers args) {                                                    \
    extern __shared__ float shared[];                                                                                  \
    __shared__ hone::cuda::ExpertLayer layer;                                                                          \
    int32_t rowTile = 0;                                                                                               \
    if (hone::cuda::enterExpert(args, tileRows, blockIdx.y, layer, rowTile))                                           \
      hone::cuda::__VA_ARGS__(layer, rowTile).run(shared);                                                             \
  }

#define HONE_FEW_EXPERT_ROWS(name, weight, split, rowTiles, columnTiles)                                               \
  HONE_EXPERT_ROWS(name, 8 * columnTiles,                                                                              \
                   FewRows<hone::cuda::weight, split, rowTiles, columnTiles, hone::cuda::ExpertLayer>)

#define HONE_FEW_EXPERT_ROWS_TILES(name, weight, split)                                                                \
  HONE_FEW_EXPERT_ROWS(name##_1x1, weight, split, 1, 1)                                                                \
  HONE_FEW_EXPERT_ROWS(name##_2x1, weight, split, 2, 1)                                                                \
  HONE_FEW_EXPERT_ROWS(name##_2x2, weight, split, 2, 2)

HONE_FEW_EXPERT_ROWS_TILES(expert_rows_f16, PlainWeight<true>, false)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_bf16, PlainWeight<false>, false)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_bf16_split, PlainWeight<false>, true)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_affine8, LevelWeight<8>, false)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_affine8_split, LevelWeight<8>, true)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_affine4, LevelWeight<4>, false)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_affine4_split, LevelWeight<4>, true)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_affine3, LevelWeight<3>, false)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_affine3_split, LevelWeight<3>, true)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_affine2, LevelWeight<2>, false)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_affine2_split, LevelWeight<2>, true)

#define HONE_EXACT_EXPERT_ROWS(name, isHalf, rows)                                                                     \
  HONE_EXPERT_ROWS(name, rows, ExactRows<hone::cuda::ExactWeight<isHalf>, rows, hone::cuda::ExpertLayer>)

HONE_EXACT_EXPERT_ROWS(exact_expert_rows_f32_1, false, 1)
HONE_EXACT_EXPERT_ROWS(exact_expert_rows_f32_4, false, 4)
HONE_EXACT_EXPERT_ROWS(exact_expert_rows_f32_16, false, 16)
HONE_EXACT_EXPERT_ROWS(exact_expert_rows_f16_1, true, 1)
HONE_EXACT_EXPERT_ROWS(exact_expert_rows_f16_4, true, 4)
HONE_EXACT_EXPERT_ROWS(exact_expert_rows_f16_16, true, 16)
