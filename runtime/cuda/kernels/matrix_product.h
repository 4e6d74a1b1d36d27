// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A matrix product by a BLAS library.

#ifndef HONE_RUNTIME_CUDA_KERNELS_MATRIX_PRODUCT_H
#define HONE_RUNTIME_CUDA_KERNELS_MATRIX_PRODUCT_H

#include <cstdint>

namespace hone::cuda {

/// y[rows, outputs] = act(x[rows, inputs] · weight[outputs, inputs]ᵀ + addend[rows, outputs] + bias[outputs]),
/// accumulated in f32. Elements of a row are contiguous, strides count elements.
struct MatrixProduct {
  const void *x, *weight, *addend, *bias; // the last two may be null; the addend may be y
  void *y;
  int64_t rows, outputs, inputs;
  int64_t xStride, weightStride, addendStride, yStride;
  int32_t type;       // of x and weight: HONE_F16 or HONE_BF16
  int32_t yType;      // of y, addend and bias: HONE_F32, or as `type`
  int32_t activation; // 0, 1 relu or 4 gelu by tanh, as signatures.def numbers them

  bool operator==(const MatrixProduct &) const = default;
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_MATRIX_PRODUCT_H
