// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of a few rows by levels as #hone.affine lays them out.

#include "../device/few_rows_kernel.h"

namespace hone::cuda {
using Levels8 = LevelWeight<8, false>;
using Levels4 = LevelWeight<4, false>;
} // namespace hone::cuda

HONE_FEW_ROWS_TILES(few_rows_affine8, Levels8, false)
HONE_FEW_ROWS_TILES(few_rows_affine8_split, Levels8, true)
HONE_FEW_ROWS_TILES(few_rows_affine4, Levels4, false)
HONE_FEW_ROWS_TILES(few_rows_affine4_split, Levels4, true)
