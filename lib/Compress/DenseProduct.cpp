// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of matrices in f64. Vectors run along the columns of c, so that no sum is ever made over lanes; every product joins its sum
// by a fused multiply-add, which is rounded once on every processor, so that every width of vectors gives the same bits.

#include "DenseProduct.h"

#include "EveryWidth.h"

#include <algorithm>
#include <cstring>

namespace hone::compress {
namespace {

constexpr int64_t kLanes = 8;
using Lanes [[gnu::vector_size(kLanes * sizeof(double)), gnu::aligned(sizeof(double))]] = double;

/// Of c, what stays in registers.
constexpr int64_t kRows = 4, kVectors = 3, kColumns = kVectors * kLanes;
/// Rows of b that are copied to lie together, 48 KiB: read where they are, each would be on a page of its own.
constexpr int64_t kDepth = 256;

/// The first `width` columns of b [depth, width] into those of `panel`.
[[gnu::always_inline]] inline void copyPanel(int64_t width, int64_t depth, ConstBlock b, double *panel) {
  for (int64_t k = 0; k < depth; ++k)
    if (width == kColumns) // of known size, which is a few moves
      std::memcpy(panel + k * kColumns, b.data + k * b.leading, kColumns * sizeof(double));
    else
      std::copy_n(b.data + k * b.leading, width, panel + k * kColumns);
}

/// c [rows, kColumns] -= a [rows, depth] · panel [depth, kColumns].
template <int64_t rows>
[[gnu::always_inline]] inline void subtractPanel(int64_t depth, ConstBlock a, const double *panel, Block c) {
  Lanes sums[rows][kVectors];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < kVectors; ++j)
      std::memcpy(&sums[i][j], c.data + i * c.leading + j * kLanes, sizeof(Lanes));
  for (int64_t k = 0; k < depth; ++k) {
    Lanes factors[kVectors];
    std::memcpy(factors, panel + k * kColumns, sizeof(factors));
    for (int64_t i = 0; i < rows; ++i) {
      Lanes factor = a.data[i * a.leading + k] - Lanes{};
      for (int64_t j = 0; j < kVectors; ++j)
        sums[i][j] = __builtin_elementwise_fma(-factor, factors[j], sums[i][j]);
    }
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < kVectors; ++j)
      std::memcpy(c.data + i * c.leading + j * kLanes, &sums[i][j], sizeof(Lanes));
}

/// The same for the first `width` columns.
template <int64_t rows>
[[gnu::always_inline]] inline void subtractColumns(int64_t width, int64_t depth, ConstBlock a, const double *panel,
                                                   Block c) {
  if (width == kColumns)
    return subtractPanel<rows>(depth, a, panel, c);
  double edge[rows * kColumns] = {};
  for (int64_t i = 0; i < rows; ++i)
    std::copy_n(c.data + i * c.leading, width, edge + i * kColumns);
  subtractPanel<rows>(depth, a, panel, {edge, kColumns});
  for (int64_t i = 0; i < rows; ++i)
    std::copy_n(edge + i * kColumns, width, c.data + i * c.leading);
}

} // namespace

HONE_EVERY_WIDTH
void subtractProduct(int64_t rows, int64_t columns, int64_t depth, ConstBlock a, ConstBlock b, Block c) {
  alignas(sizeof(Lanes)) double panel[kDepth * kColumns] = {};
  for (int64_t first = 0; first < depth; first += kDepth)
    for (int64_t column = 0; column < columns; column += kColumns) {
      int64_t deep = std::min(kDepth, depth - first), width = std::min(kColumns, columns - column), row = 0;
      copyPanel(width, deep, {b.data + first * b.leading + column, b.leading}, panel);
      auto at = [&](int64_t i) { return ConstBlock{a.data + i * a.leading + first, a.leading}; };
      auto to = [&](int64_t i) { return Block{c.data + i * c.leading + column, c.leading}; };
      for (; row + kRows <= rows; row += kRows)
        subtractColumns<kRows>(width, deep, at(row), panel, to(row));
      for (; row < rows; ++row)
        subtractColumns<1>(width, deep, at(row), panel, to(row));
    }
}

} // namespace hone::compress
