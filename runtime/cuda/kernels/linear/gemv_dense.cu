// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMV of more than 8 rows by weights of f16 and bf16; fewer rows are those of gemv_stream.cu.

#include "../device/gemv_kernel.h"

#define HONE_GEMV_ROWS(name, weight, split)                                                                            \
  HONE_GEMV(name##_2x2, weight, split, 2, 2)                                                                           \
  HONE_GEMV_SIBLINGS(name##_siblings_2x2, weight, split, 2, 2)                                                         \
  HONE_GEMV_GATED(name##_gated_2x2, weight, split, 2)

HONE_GEMV_ROWS(gemv_f16, DenseWeight<true>, false)
HONE_GEMV_ROWS(gemv_bf16, DenseWeight<false>, false)
HONE_GEMV_ROWS(gemv_bf16_split, DenseWeight<false>, true)
