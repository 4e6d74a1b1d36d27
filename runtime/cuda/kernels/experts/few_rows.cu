// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of experts that have few rows each.

#include "../device/exact_rows_kernel.h"
#include "../device/expert_tile.h"
#include "../device/few_rows_kernel.h"

namespace hone::cuda {
using Levels8 = LevelWeight<8, false>;
using Levels4 = LevelWeight<4, false>;
using Floats16 = PlainWeight<true>;
using BFloats16 = PlainWeight<false>;
} // namespace hone::cuda

#define HONE_EXPERT_ROWS(name, tileRows, ...)                                                                          \
  extern "C" __global__ void __launch_bounds__(32 * hone::cuda::kExpertSlices)                                         \
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

HONE_FEW_EXPERT_ROWS_TILES(expert_rows_f16, Floats16, false)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_bf16, BFloats16, false)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_bf16_split, BFloats16, true)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_affine8, Levels8, false)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_affine8_split, Levels8, true)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_affine4, Levels4, false)
HONE_FEW_EXPERT_ROWS_TILES(expert_rows_affine4_split, Levels4, true)

#define HONE_EXACT_EXPERT_ROWS(name, isHalf, rows)                                                                     \
  HONE_EXPERT_ROWS(name, rows, ExactRows<isHalf, rows, hone::cuda::ExpertLayer>)

HONE_EXACT_EXPERT_ROWS(exact_expert_rows_f32_1, false, 1)
HONE_EXACT_EXPERT_ROWS(exact_expert_rows_f32_4, false, 4)
HONE_EXACT_EXPERT_ROWS(exact_expert_rows_f32_16, false, 16)
HONE_EXACT_EXPERT_ROWS(exact_expert_rows_f16_1, true, 1)
HONE_EXACT_EXPERT_ROWS(exact_expert_rows_f16_4, true, 4)
HONE_EXACT_EXPERT_ROWS(exact_expert_rows_f16_16, true, 16)
