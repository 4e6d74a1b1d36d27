// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of x as a format of floating-point weights takes them.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_ACTIVATIONS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_ACTIVATIONS_H

#include "dense_formats.h"
#include "layer.h"

namespace {

/// Rows of x converted, dense, and filled up with zeros to `inputs`. Up to `directRows` rows are not copied where x has
/// floats in the right places. `spareRows` more may be read behind the last one; they hold anything.
template <typename Format> class DenseActivations {
public:
  using Element = typename Format::Activation;

  DenseActivations(const hone_tensor &x, int64_t rows, int64_t inputs, int64_t directRows, int64_t spareRows)
      : padded(inputs), stride(oddLineBytes(inputs * sizeof(Element)) / sizeof(Element)),
        direct(findDirect(x, directRows)), copy(direct ? 0 : (rows + spareRows) * stride) {
    if (direct)
      return;
    int64_t given = x.sizes[x.rank - 1];
#pragma omp parallel for schedule(static) if (rows * inputs > 1 << 15)
    for (int64_t r = 0; r < rows; ++r)
      convertRow(rowOf(x, r), given, copy.data() + r * stride);
  }

  const Element *row(int64_t index) const { return (direct ? direct : copy.data()) + index * stride; }
  int64_t rowStride() const { return stride; }

private:
  /// x itself where it may be used; then the stride is that of x.
  const Element *findDirect(const hone_tensor &x, int64_t directRows) {
    if constexpr (sizeof(Element) == sizeof(float)) {
      Matrix matrix;
      if (collapseRows(x, matrix) && matrix.rows <= directRows && matrix.columns == padded &&
          (matrix.columnStride == 1 || padded == 1)) {
        stride = matrix.rowStride;
        return matrix.data;
      }
    }
    return nullptr;
  }

  void convertRow(Row from, int64_t given, Element *to) const {
    if (from.stride == 1)
      for (int64_t k = 0; k < given; ++k)
        to[k] = Format::convert(from.data[k]);
    else
      for (int64_t k = 0; k < given; ++k)
        to[k] = Format::convert(from[k]);
    for (int64_t k = given; k < padded; ++k)
      to[k] = 0;
  }

  int64_t padded, stride;
  const Element *direct;
  Scratch<Element> copy;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_ACTIVATIONS_H
