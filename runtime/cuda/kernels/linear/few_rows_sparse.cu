// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of a few rows by 2:4 weights.

#include "../device/few_rows_kernel.h"
#include "../device/sparse_weights.h"

HONE_FEW_ROWS_TILES(sparse_few_rows_f16, KeptWeight<true>, false)
HONE_FEW_ROWS_TILES(sparse_few_rows_bf16, KeptWeight<false>, false)
HONE_FEW_ROWS_TILES(sparse_few_rows_bf16_split, KeptWeight<false>, true)
HONE_FEW_ROWS_TILES(sparse_few_rows_affine8, KeptLevels<8>, false)
HONE_FEW_ROWS_TILES(sparse_few_rows_affine8_split, KeptLevels<8>, true)
HONE_FEW_ROWS_TILES(sparse_few_rows_affine4, KeptLevels<4>, false)
HONE_FEW_ROWS_TILES(sparse_few_rows_affine4_split, KeptLevels<4>, true)
