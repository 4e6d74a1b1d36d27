// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Powers of e, sixteen at once.

#ifndef HONE_RUNTIME_CPU_KERNELS_VECTOR_EXP_H
#define HONE_RUNTIME_CPU_KERNELS_VECTOR_EXP_H

#include "rows.h"
#include "vector.h"

namespace {

/// e^x for x ≤ 0, as vectorExp; 0 below -87.34, NaN for NaN.
inline Vector expBelowZero(Vector x) {
  constexpr float least = -87.336544f;
  auto [n, p] = reduceExp(x);
  Integers bits = loadAs<Integers>(&p) + (__builtin_convertvector(n, Integers) << 23); // 2^n · p: p is in [0.7, 1.42]
  return x < least ? (Vector)0.0f : loadAs<Vector>(&bits);
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_VECTOR_EXP_H
