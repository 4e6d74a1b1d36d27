// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers of a few rows by weights of f32, and of f16 with inputs that f16 does not hold.

#include "../device/exact_rows_kernel.h"

#define HONE_EXACT_ROWS(name, weight, rows)                                                                            \
  extern "C" __global__ void __launch_bounds__(256, 1)                                                                 \
      name(const __grid_constant__ hone::cuda::LinearArguments args) {                                                 \
    extern __shared__ float shared[];                                                                                  \
    hone::cuda::ExactRows<hone::cuda::weight, rows>(args, blockIdx.y).run(shared);                                     \
  }

HONE_EXACT_ROWS(exact_rows_f32_1, ExactWeight<false>, 1)
HONE_EXACT_ROWS(exact_rows_f32_4, ExactWeight<false>, 4)
HONE_EXACT_ROWS(exact_rows_f32_16, ExactWeight<false>, 16)
HONE_EXACT_ROWS(exact_rows_f16_1, ExactWeight<true>, 1)
HONE_EXACT_ROWS(exact_rows_f16_4, ExactWeight<true>, 4)
HONE_EXACT_ROWS(exact_rows_f16_16, ExactWeight<true>, 16)
HONE_EXACT_ROWS(sparse_exact_rows_f32_1, KeptExactWeight<false>, 1)
HONE_EXACT_ROWS(sparse_exact_rows_f32_4, KeptExactWeight<false>, 4)
HONE_EXACT_ROWS(sparse_exact_rows_f32_16, KeptExactWeight<false>, 16)
HONE_EXACT_ROWS(sparse_exact_rows_f16_1, KeptExactWeight<true>, 1)
HONE_EXACT_ROWS(sparse_exact_rows_f16_4, KeptExactWeight<true>, 4)
HONE_EXACT_ROWS(sparse_exact_rows_f16_16, KeptExactWeight<true>, 16)
