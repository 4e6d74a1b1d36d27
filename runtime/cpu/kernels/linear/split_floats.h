// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats as sums of bf16, after Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
// Higher-Precision Computations" (2019): each plane is what is left of a float, rounded to bf16. Three planes are the
// float exactly, unless the last of them is subnormal. A float that rounds to infinity has planes that are not numbers.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_SPLIT_FLOATS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_SPLIT_FLOATS_H

#ifdef __AMX_TILE__

#include "../vector.h"

#include <immintrin.h>

namespace {

/// To the nearest bf16, away from zero where two are as near.
inline Vector roundToBf16(Vector values) { return asFloats((loadAs<Words>(&values) + 0x8000u) & 0xffff0000u); }

/// Stores the planes of two vectors, planeBytes apart; `pack` makes 32 bf16 of what are bf16 as floats. What the last
/// plane takes is to be one.
template <int PLANES, typename Pack>
void storeSplit(Vector first, Vector second, uint8_t *to, int64_t planeBytes, Pack pack) {
#pragma unroll
  for (int plane = 0; plane < PLANES; ++plane, to += planeBytes) {
    bool isLast = plane + 1 == PLANES;
    Vector a = isLast ? first : roundToBf16(first), b = isLast ? second : roundToBf16(second);
    _mm512_store_si512(to, pack(a, b));
    first -= a;
    second -= b;
  }
}

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_SPLIT_FLOATS_H
