// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of small matrices of floats that lie in the cache.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_PRODUCTS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_PRODUCTS_H

#include "../vector.h"

namespace {

// Sums in registers: rows times vectors; a vector is two registers where registers have 256 bits.
#ifdef __AVX512F__
constexpr int kProductRows = 6, kProductVectors = 4;
#else
constexpr int kProductRows = 6, kProductVectors = 1;
#endif

/// c[rows, columns] = a[rows, depth] · b[depth, columns], plus c where `accumulate`. Strides count elements, columns of b and c
/// are a multiple of 16.
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

template <int ROWS> void multiplyRows(Product p, int64_t rows, int64_t columns) {
  if constexpr (ROWS > 1)
    if (rows < ROWS)
      return multiplyRows<ROWS - 1>(p, rows, columns);
  for (; columns >= kProductVectors * kLanes; columns -= kProductVectors * kLanes) {
    multiplyBlock<ROWS, kProductVectors>(p);
    p.b += kProductVectors * kLanes;
    p.c += kProductVectors * kLanes;
  }
  for (; columns > 0; columns -= kLanes) {
    multiplyBlock<ROWS, 1>(p);
    p.b += kLanes;
    p.c += kLanes;
  }
}

/// Rows pass by in blocks of nearly equal height.
inline void multiply(Product p, int64_t rows, int64_t columns) {
  int64_t blocks = (rows + kProductRows - 1) / kProductRows, height = blocks == 0 ? 1 : (rows + blocks - 1) / blocks;
  for (; rows > 0; rows -= height) {
    multiplyRows<kProductRows>(p, smaller(rows, height), columns);
    p.a += height * p.aStride;
    p.c += height * p.cStride;
  }
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_PRODUCTS_H
