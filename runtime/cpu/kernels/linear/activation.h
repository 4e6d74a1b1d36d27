// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activation functions as loops that vectorize.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_ACTIVATION_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_ACTIVATION_H

#include "../rows.h"

namespace {

/// The numbers are attributes of kernels; kernels.h has the formulas.
enum Activation : int64_t { kIdentity = 0, kRelu = 1, kSilu = 2, kGeluErf = 3, kGeluTanh = 4 };

inline float logistic(float x) { return 1.0f / (1.0f + vectorExp(-x)); }

/// erf to 1.5e-7 (Abramowitz and Stegun, 1964, 7.1.26).
inline float vectorErf(float x) {
  float size = __builtin_fabsf(x);
  float t = 1.0f / (1.0f + 0.3275911f * size);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  return __builtin_copysignf(1.0f - p * t * vectorExp(-size * size), x);
}

template <typename Function> void mapRow(float *y, int64_t count, Function function) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    y[i] = function(y[i]);
}

inline void activateRow(float *y, int64_t count, int64_t activation) {
  switch (activation) {
  case kRelu:
    return mapRow(y, count, [](float x) { return x > 0 ? x : 0 * x; });
  case kSilu:
    return mapRow(y, count, [](float x) { return x * logistic(x); });
  case kGeluErf:
    return mapRow(y, count, [](float x) { return 0.5f * x * (1.0f + vectorErf(x * 0.70710678f)); });
  case kGeluTanh: // 0.5 (1 + tanh u) is the logistic function of 2u
    return mapRow(y, count, [](float x) { return x * logistic(1.59576912f * (x + 0.044715f * x * x * x)); });
  default:
    return;
  }
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_ACTIVATION_H
