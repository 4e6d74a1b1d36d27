// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices as methods of compression see them.

#ifndef HONE_COMPRESS_MATRIX_H
#define HONE_COMPRESS_MATRIX_H

#include <cstdint>
#include <span>

namespace hone::compress {

/// A weight [N, K], row-major: a row an output, a column an input.
struct Weight {
  std::span<float> elements;
  int64_t rows, columns;

  std::span<float> row(int64_t i) const { return elements.subspan(i * columns, columns); }
};

/// The layer-wise Hessian of GPTQ and SparseGPT, H = XᵀX / n [K, K], symmetric: the mean of x xᵀ over the n rows x [K] of inputs that a
/// layer multiplies its weight with. Its diagonal are the second moments of the inputs.
struct Hessian {
  std::span<const float> elements;
  int64_t size;

  float diagonal(int64_t i) const { return elements[i * size + i]; }
};

} // namespace hone::compress

#endif // HONE_COMPRESS_MATRIX_H
