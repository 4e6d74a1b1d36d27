// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMV by quantized weights whose groups are at least a wide chunk.

#include "../device/gemv_kernel.h"

HONE_GEMV_TILES(gemv_wide_affine8, WideAffineWeight<8>, false)
HONE_GEMV_TILES(gemv_wide_affine8_split, WideAffineWeight<8>, true)
HONE_GEMV_TILES(gemv_wide_affine4, WideAffineWeight<4>, false)
HONE_GEMV_TILES(gemv_wide_affine4_split, WideAffineWeight<4>, true)
HONE_GEMV_TILES(gemv_wide_affine6, WideAffineWeight<6>, false)
HONE_GEMV_TILES(gemv_wide_affine6_split, WideAffineWeight<6>, true)
HONE_GEMV_TILES(gemv_wide_affine5, WideAffineWeight<5>, false)
HONE_GEMV_TILES(gemv_wide_affine5_split, WideAffineWeight<5>, true)
HONE_GEMV_TILES(gemv_wide_affine3, WideAffineWeight<3>, false)
HONE_GEMV_TILES(gemv_wide_affine3_split, WideAffineWeight<3>, true)
HONE_GEMV_TILES(gemv_wide_affine2, WideAffineWeight<2>, false)
HONE_GEMV_TILES(gemv_wide_affine2_split, WideAffineWeight<2>, true)

HONE_GEMV_LAYERS(gemv_wide_affine8, WideAffineWeight<8>, false)
HONE_GEMV_LAYERS(gemv_wide_affine8_split, WideAffineWeight<8>, true)
HONE_GEMV_LAYERS(gemv_wide_affine4, WideAffineWeight<4>, false)
HONE_GEMV_LAYERS(gemv_wide_affine4_split, WideAffineWeight<4>, true)
HONE_GEMV_LAYERS(gemv_wide_affine6, WideAffineWeight<6>, false)
HONE_GEMV_LAYERS(gemv_wide_affine6_split, WideAffineWeight<6>, true)
HONE_GEMV_LAYERS(gemv_wide_affine5, WideAffineWeight<5>, false)
HONE_GEMV_LAYERS(gemv_wide_affine5_split, WideAffineWeight<5>, true)
HONE_GEMV_LAYERS(gemv_wide_affine3, WideAffineWeight<3>, false)
HONE_GEMV_LAYERS(gemv_wide_affine3_split, WideAffineWeight<3>, true)
HONE_GEMV_LAYERS(gemv_wide_affine2, WideAffineWeight<2>, false)
HONE_GEMV_LAYERS(gemv_wide_affine2_split, WideAffineWeight<2>, true)
