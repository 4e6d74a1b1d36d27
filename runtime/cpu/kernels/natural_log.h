// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The natural logarithm, alike on every ISA.

#ifndef HONE_RUNTIME_CPU_KERNELS_NATURAL_LOG_H
#define HONE_RUNTIME_CPU_KERNELS_NATURAL_LOG_H

#include <stdint.h>

namespace {

/// log(x) for a positive x to half a unit in the last place: x = m · 2^n with m in [√½, √2), and log m = 2 artanh s with
/// s = (m - 1) / (m + 1), whose series errs by less than 1e-9 after s^9 as |s| < 0.172. Infinity and NaN stay.
inline float naturalLog(float x) {
  if (!(x < __builtin_inff()))
    return x;
  double m = x;
  int64_t bits;
  __builtin_memcpy(&bits, &m, sizeof bits);
  constexpr int64_t kExponentBit = 52, kHalfRoot = 0x3fe6a09e667f3bcd; // the bits of √½
  int64_t n = (bits - kHalfRoot) >> kExponentBit;
  bits -= n << kExponentBit;
  __builtin_memcpy(&m, &bits, sizeof m);
  constexpr double kLn2 = 0.69314718055994530942;
  double s = (m - 1) / (m + 1), t = s * s;
  double series = 1 + t * (1.0 / 3 + t * (1.0 / 5 + t * (1.0 / 7 + t * (1.0 / 9))));
  return static_cast<float>(static_cast<double>(n) * kLn2 + 2 * s * series);
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_NATURAL_LOG_H
