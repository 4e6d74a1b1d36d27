// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMV by weights of f16 and bf16.

#include "../device/gemv_kernel.h"

HONE_GEMV_TILES(gemv_f16, DenseWeight<true>, false)
HONE_GEMV_TILES(gemv_bf16, DenseWeight<false>, false)
HONE_GEMV_TILES(gemv_bf16_split, DenseWeight<false>, true)
