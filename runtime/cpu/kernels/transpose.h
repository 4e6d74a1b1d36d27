// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sixteen vectors as a matrix of 32-bit words, transposed.

#ifndef HONE_RUNTIME_CPU_KERNELS_TRANSPOSE_H
#define HONE_RUNTIME_CPU_KERNELS_TRANSPOSE_H

#include "vector.h"

namespace {

/// Lanes of a pair of vectors by a bit of their number: LOW keeps those of the first without the bit, HIGH those with
/// it; those of the second vector fill the lanes with the bit.
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

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_TRANSPOSE_H
