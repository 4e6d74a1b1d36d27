// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of a few rows by packed levels.

#include "../device/few_rows_kernel.h"

namespace hone::cuda {
using Levels8 = LevelWeight<8, true>;
using Levels4 = LevelWeight<4, true>;
} // namespace hone::cuda

HONE_FEW_ROWS_TILES(few_rows_u8, Levels8, false)
HONE_FEW_ROWS_TILES(few_rows_u8_split, Levels8, true)
HONE_FEW_ROWS_TILES(few_rows_u4, Levels4, false)
HONE_FEW_ROWS_TILES(few_rows_u4_split, Levels4, true)
