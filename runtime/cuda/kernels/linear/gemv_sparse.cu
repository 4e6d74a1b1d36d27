// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMV by 2:4 weights.

#include "../device/gemv_kernel.h"
#include "../device/sparse_weights.h"

HONE_GEMV_TILES(sparse_gemv_f16, SparseWeight<true>, false)
HONE_GEMV_TILES(sparse_gemv_bf16, SparseWeight<false>, false)
HONE_GEMV_TILES(sparse_gemv_bf16_split, SparseWeight<false>, true)
HONE_GEMV_TILES(sparse_gemv_affine8, SparseAffineWeight<8>, false)
HONE_GEMV_TILES(sparse_gemv_affine8_split, SparseAffineWeight<8>, true)
HONE_GEMV_TILES(sparse_gemv_affine4, SparseAffineWeight<4>, false)
HONE_GEMV_TILES(sparse_gemv_affine4_split, SparseAffineWeight<4>, true)
