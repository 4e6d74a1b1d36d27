// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of small matrices of floats that lie in the cache.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_PRODUCTS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_PRODUCTS_H

#include "../vector.h"

namespace {

// Sums in registers, rows times vectors, and most vectors of a row; a vector is two registers where registers have 256
// bits.
#ifdef __AVX512F__
constexpr int kProductSums = 24, kProductVectors = 4;
#else
constexpr int kProductSums = 6, kProductVectors = 1;
#endif
constexpr int kMostProductRows = 12;

/// c[rows, columns] = a[rows, depth] · b[depth, columns], plus c where `accumulate`. Strides count elements, columns of
/// b and c are a multiple of 16.
struct Product {
  const float *a;
  int64_t aStride;
  const float *b;
  int64_t bStride, depth;
  float *c;
  int64_t cStride;
  bool accumulate;
};

template <int ROWS, int VECTORS> void multiplyBlock(const Product &p) {
  Vector sums[ROWS][VECTORS];
  for (int r = 0; r < ROWS; ++r)
    for (int v = 0; v < VECTORS; ++v)
      sums[r][v] = p.accumulate ? load(p.c + r * p.cStride + v * kLanes) : 0;
  const float *a = p.a, *b = p.b;
  for (int64_t k = 0; k < p.depth; ++k, ++a, b += p.bStride) {
    Vector row[VECTORS];
    for (int v = 0; v < VECTORS; ++v)
      row[v] = load(b + v * kLanes);
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < VECTORS; ++v)
        sums[r][v] += a[r * p.aStride] * row[v];
  }
  for (int r = 0; r < ROWS; ++r)
    for (int v = 0; v < VECTORS; ++v)
      store(p.c + r * p.cStride + v * kLanes, sums[r][v]);
}

template <int ROWS, int VECTORS> void multiplyRows(const Product &p, int64_t rows) {
  if constexpr (ROWS > 1)
    if (rows < ROWS)
      return multiplyRows<ROWS - 1, VECTORS>(p, rows);
  multiplyBlock<ROWS, VECTORS>(p);
}

/// VECTORS vectors of columns; rows pass by in blocks of nearly equal height, as high as registers have sums.
template <int VECTORS> void multiplyColumns(Product p, int64_t rows) {
  constexpr int most = kProductSums / VECTORS < kMostProductRows ? kProductSums / VECTORS : kMostProductRows;
  int64_t blocks = (rows + most - 1) / most, height = blocks == 0 ? 1 : (rows + blocks - 1) / blocks;
  for (; rows > 0; rows -= height) {
    multiplyRows<most, VECTORS>(p, smaller(rows, height));
    p.a += height * p.aStride;
    p.c += height * p.cStride;
  }
}

template <int VECTORS = kProductVectors> void multiply(Product p, int64_t rows, int64_t columns) {
  for (; columns >= VECTORS * kLanes; columns -= VECTORS * kLanes) {
    multiplyColumns<VECTORS>(p, rows);
    p.b += VECTORS * kLanes;
    p.c += VECTORS * kLanes;
  }
  if constexpr (VECTORS > 1)
    multiply<VECTORS / 2>(p, rows, columns);
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_PRODUCTS_H
