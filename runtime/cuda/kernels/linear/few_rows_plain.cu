// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of a few rows by weights of f16 and bf16.

#include "../device/few_rows_kernel.h"

HONE_FEW_ROWS_TILES(few_rows_f16, PlainWeight<true>, false)
HONE_FEW_ROWS_TILES(few_rows_bf16, PlainWeight<false>, false)
HONE_FEW_ROWS_TILES(few_rows_bf16_split, PlainWeight<false>, true)
