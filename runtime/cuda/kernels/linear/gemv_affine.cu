// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMV by quantized weights of 8 and 4 bits.

#include "../device/gemv_kernel.h"

HONE_GEMV_TILES(gemv_affine8, AffineWeight<8>, false)
HONE_GEMV_TILES(gemv_affine8_split, AffineWeight<8>, true)
HONE_GEMV_TILES(gemv_affine4, AffineWeight<4>, false)
HONE_GEMV_TILES(gemv_affine4_split, AffineWeight<4>, true)

HONE_GEMV_LAYERS(gemv_affine8, AffineWeight<8>, false)
HONE_GEMV_LAYERS(gemv_affine8_split, AffineWeight<8>, true)
HONE_GEMV_LAYERS(gemv_affine4, AffineWeight<4>, false)
HONE_GEMV_LAYERS(gemv_affine4_split, AffineWeight<4>, true)
