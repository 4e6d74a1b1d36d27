// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of a few rows by levels of 3 and 2 bits.

#include "../device/few_rows_kernel.h"

HONE_FEW_ROWS_TILES(few_rows_affine3, LevelWeight<3>, false)
HONE_FEW_ROWS_TILES(few_rows_affine3_split, LevelWeight<3>, true)
HONE_FEW_ROWS_TILES(few_rows_affine2, LevelWeight<2>, false)
HONE_FEW_ROWS_TILES(few_rows_affine2_split, LevelWeight<2>, true)
