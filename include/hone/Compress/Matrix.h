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

/// H [K, K], symmetric: the mean of x xᵀ over the rows x [K] that a layer multiplies its weight with.
struct SecondMoment {
  std::span<const float> elements;
  int64_t size;

  float diagonal(int64_t i) const { return elements[i * size + i]; }
};

} // namespace hone::compress

#endif // HONE_COMPRESS_MATRIX_H
