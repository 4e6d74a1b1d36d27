// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pairs of bf16 in words of 32 bits, as dot products and tiles of bf16 take their right operand.

#ifndef HONE_RUNTIME_CPU_KERNELS_BF16_PAIRS_H
#define HONE_RUNTIME_CPU_KERNELS_BF16_PAIRS_H

#ifdef __AVX512BF16__

#include "vector.h"

#include <immintrin.h>

namespace {

/// Sixteen pairs, rounded to nearest: elements of the first vector are the lower halves.
inline Vector pairsOfBf16(Vector first, Vector second) {
  typedef uint16_t Halves __attribute__((ext_vector_type(32)));
  auto both = (Halves)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
  return (Vector)__builtin_shufflevector(both, both, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25,
                                         10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

} // namespace

#endif // __AVX512BF16__
#endif // HONE_RUNTIME_CPU_KERNELS_BF16_PAIRS_H
