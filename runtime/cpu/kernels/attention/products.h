// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of small matrices of floats that lie in the cache.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_PRODUCTS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_PRODUCTS_H

#include "../vector.h"
#include "cache.h"

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

/// Lanes of a pair of vectors by a bit of their number: LOW keeps those of the first without the bit, HIGH those with it; those
/// of the second vector fill the lanes with the bit.
template <int BIT> Vector lowLanes(Vector a, Vector b) {
  if constexpr (BIT == 8)
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  else if constexpr (BIT == 4)
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
  else if constexpr (BIT == 2)
    return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  else
    return __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
}

template <int BIT> Vector highLanes(Vector a, Vector b) {
  if constexpr (BIT == 8)
    return __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  else if constexpr (BIT == 4)
    return __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  else if constexpr (BIT == 2)
    return __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  else
    return __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
}

/// Lane i of the result is the sum of the lanes of vectors[i].
template <int BIT = 8> Vector sumEach(Vector (&vectors)[kLanes]) {
  for (int i = 0; i < BIT; ++i)
    vectors[i] = lowLanes<BIT>(vectors[i], vectors[i + BIT]) + highLanes<BIT>(vectors[i], vectors[i + BIT]);
  if constexpr (BIT > 1)
    return sumEach<BIT / 2>(vectors);
  return vectors[0];
}

/// Swaps rows and lanes: the blocks of half the size off the diagonal, then within each block.
template <int BIT = 8> void transpose(Vector (&rows)[kLanes]) {
  for (int i = 0; i < kLanes; ++i) {
    if (i & BIT)
      continue;
    Vector first = rows[i], second = rows[i + BIT];
    rows[i] = lowLanes<BIT>(first, second);
    rows[i + BIT] = highLanes<BIT>(first, second);
  }
  if constexpr (BIT > 1)
    transpose<BIT / 2>(rows);
}

/// to[d][j] = from[j][d] for 16 rows and 16 elements; rows from `count` on repeat the last one.
inline void transposeBlock(const float *from, int64_t fromStride, int64_t count, float *to, int64_t toStride) {
  Vector rows[kLanes];
  for (int64_t j = 0; j < kLanes; ++j)
    rows[j] = load(from + smaller(j, count - 1) * fromStride);
  transpose(rows);
  for (int64_t d = 0; d < kLanes; ++d)
    store(to + d * toStride, rows[d]);
}

/// Dot products of a row with 16 rows, of a multiple of 16 elements; rows from `count` on repeat the last one.
inline Vector dotRows(const float *row, const float *rows, int64_t stride, int64_t count, int64_t size) {
  Vector sums[kLanes] = {};
  for (int64_t d = 0; d < size; d += kLanes) {
    Vector part = load(row + d);
    for (int64_t j = 0; j < kLanes; ++j)
      sums[j] += part * load(rows + smaller(j, count - 1) * stride + d);
  }
  return sumEach(sums);
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_PRODUCTS_H
