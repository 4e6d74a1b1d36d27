// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMV by quantized weights of 3 and 2 bits.

#include "../device/gemv_kernel.h"

HONE_GEMV_TILES(gemv_affine6, AffineWeight<6>, false)
HONE_GEMV_TILES(gemv_affine6_split, AffineWeight<6>, true)
HONE_GEMV_TILES(gemv_affine5, AffineWeight<5>, false)
HONE_GEMV_TILES(gemv_affine5_split, AffineWeight<5>, true)
HONE_GEMV_TILES(gemv_affine3, AffineWeight<3>, false)
HONE_GEMV_TILES(gemv_affine3_split, AffineWeight<3>, true)
HONE_GEMV_TILES(gemv_affine2, AffineWeight<2>, false)
HONE_GEMV_TILES(gemv_affine2_split, AffineWeight<2>, true)

HONE_GEMV_LAYERS(gemv_affine6, AffineWeight<6>, false)
HONE_GEMV_LAYERS(gemv_affine6_split, AffineWeight<6>, true)
HONE_GEMV_LAYERS(gemv_affine5, AffineWeight<5>, false)
HONE_GEMV_LAYERS(gemv_affine5_split, AffineWeight<5>, true)
HONE_GEMV_LAYERS(gemv_affine3, AffineWeight<3>, false)
HONE_GEMV_LAYERS(gemv_affine3_split, AffineWeight<3>, true)
HONE_GEMV_LAYERS(gemv_affine2, AffineWeight<2>, false)
HONE_GEMV_LAYERS(gemv_affine2_split, AffineWeight<2>, true)
