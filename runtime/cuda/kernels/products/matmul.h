// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of several matrices: kernel arguments.

#ifndef HONE_RUNTIME_CUDA_KERNELS_PRODUCTS_MATMUL_H
#define HONE_RUNTIME_CUDA_KERNELS_PRODUCTS_MATMUL_H

#include "../row_view.h"

namespace hone::cuda {

/// A tile of c is 64 by 64 elements, and eight by four of a thread; sums go along 16 inputs at once.
constexpr int32_t kProductTile = 64, kProductDepth = 16, kProductThreads = 128, kThreadRows = 8, kThreadColumns = 4;

constexpr int32_t kLeadingAxes = HONE_MAX_RANK - 2;

/// The matrices of a tensor, of any strides; a stride of 0 repeats a matrix.
struct Matrices {
  char *data;
  int32_t dtype; // HONE_F32, HONE_F16 or HONE_BF16
  int64_t rowStride, columnStride, strides[kLeadingAxes];
};

struct MatmulArguments {
  Matrices a, b, c;
  int64_t rows, inputs, columns; // c is rows by columns
  int64_t matrices;
  int64_t sizes[kLeadingAxes]; // of the leading axes of c, from the last one on; 1 of those that it lacks
  bool accumulates;            // adds to what c has
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_PRODUCTS_MATMUL_H
