// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers of a few rows by weights of f32, and of f16 with inputs that f16 does not hold.

#include "../device/exact_rows_kernel.h"

#define HONE_EXACT_ROWS(name, isHalf, rows)                                                                            \
  extern "C" __global__ void __launch_bounds__(256, 1)                                                                 \
      name(const __grid_constant__ hone::cuda::LinearArguments args) {                                                 \
    extern __shared__ float shared[];                                                                                  \
    hone::cuda::ExactRows<isHalf, rows>(args, blockIdx.y).run(shared);                                                 \
  }

HONE_EXACT_ROWS(exact_rows_f32_1, false, 1)
HONE_EXACT_ROWS(exact_rows_f32_4, false, 4)
HONE_EXACT_ROWS(exact_rows_f32_16, false, 16)
HONE_EXACT_ROWS(exact_rows_f16_1, true, 1)
HONE_EXACT_ROWS(exact_rows_f16_4, true, 4)
HONE_EXACT_ROWS(exact_rows_f16_16, true, 16)
