// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats as sums of bf16 limbs, and caches as matrices of bf16 limbs that AMX multiplies.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_LIMBS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_LIMBS_H

#ifdef __AMX_BF16__

#include "cache.h"

namespace {

constexpr uint32_t kUpperHalf = 0xffff0000u;

inline Words bitsOf(Vector vector) { return loadAs<Words>(&vector); }

/// Words with the bf16 that `low` begins with in their lower half, and that of `high` in their upper half.
inline Words pairLimbs(Vector low, Vector high) { return (bitsOf(low) >> 16) | (bitsOf(high) & kUpperHalf); }

inline Vector truncateToBf16(Vector x) { return asFloats(bitsOf(x) & kUpperHalf); }

/// The nearest bf16: what it lacks of x has a sign of its own, so that sums of truncated rests are not biased.
inline Vector roundToBf16(Vector x) { return asFloats((bitsOf(x) + 0x8000u) & kUpperHalf); }

/// Elements of a cache as sums of kCount bf16, exact. kIsBf16: they lie in memory as the only limb.
template <typename Cache> struct CacheLimbs;

template <> struct CacheLimbs<Bf16Cache> {
  static constexpr int kCount = 1;
  static constexpr bool kIsBf16 = true;
  static void pair(Vector low, Vector high, Words (&words)[kCount]) { words[0] = pairLimbs(low, high); }
};

template <> struct CacheLimbs<F16Cache> {
  static constexpr int kCount = 2;
  static constexpr bool kIsBf16 = false;
  static void pair(Vector low, Vector high, Words (&words)[kCount]) {
    words[0] = pairLimbs(low, high);
    words[1] = pairLimbs(low - truncateToBf16(low), high - truncateToBf16(high));
  }
};

} // namespace

#endif // __AMX_BF16__
#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_LIMBS_H
