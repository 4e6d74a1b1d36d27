// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of a few rows by levels of 8 and 4 bits.

#include "../device/few_rows_kernel.h"

HONE_FEW_ROWS_TILES(few_rows_affine8, LevelWeight<8>, false)
HONE_FEW_ROWS_TILES(few_rows_affine8_split, LevelWeight<8>, true)
HONE_FEW_ROWS_TILES(few_rows_affine4, LevelWeight<4>, false)
HONE_FEW_ROWS_TILES(few_rows_affine4_split, LevelWeight<4>, true)
