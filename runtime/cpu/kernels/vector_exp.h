// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Powers of e, sixteen at once.

#ifndef HONE_RUNTIME_CPU_KERNELS_VECTOR_EXP_H
#define HONE_RUNTIME_CPU_KERNELS_VECTOR_EXP_H

#include "rows.h"
#include "vector.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace {

/// p · 2^n for p in [0.7, 1.42] and whole n, or 0 where x < least.
inline Vector scaleUnlessBelow(Vector p, Vector n, Vector x, float least) {
#ifdef __AVX512F__
  __mmask16 isKept = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(least), _CMP_NLT_UQ);
  return (Vector)_mm512_maskz_scalef_ps(isKept, (__m512)p, (__m512)n);
#else
  Integers bits = loadAs<Integers>(&p) + (__builtin_convertvector(n, Integers) << 23);
  return x < least ? (Vector)0.0f : loadAs<Vector>(&bits);
#endif
}

/// e^x for x ≤ 88, by 2^n and a polynomial for the rest of x log2(e), a least-squares fit of the relative error over
/// [-1/2, 1/2], reweighted until the error is even: 2 units in the last place, and one more for each eight that x is
/// away from 0. 0 below -87.34, NaN for NaN.
inline Vector boundedExp(Vector x) {
  constexpr float log2E = 1.44269504f;
  Vector n = (x * log2E + 12582912.0f) - 12582912.0f; // 1.5 · 2^23: near it floats are integers
  Vector r = x * log2E - n, p = 1.3264726e-3f;
  p = p * r + 9.6715130e-3f;
  p = p * r + 5.5507336e-2f;
  p = p * r + 2.4022242e-1f;
  p = p * r + 6.9314700e-1f;
  p = p * r + 1.0f;
  return scaleUnlessBelow(p, n, x, -87.336544f);
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_VECTOR_EXP_H
