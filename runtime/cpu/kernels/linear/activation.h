// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activation functions of sixteen floats.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_ACTIVATION_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_ACTIVATION_H

#include "../vector_exp.h"

namespace {

/// The numbers are attributes of kernels; signatures.def has the formulas.
enum Activation : int64_t { kIdentity = 0, kRelu = 1, kSilu = 2, kGeluErf = 3, kGeluTanh = 4, kHardSwish = 5 };

/// 1 / x for x in [1, 2], to 1 unit in the last place: an estimate of 14 bits and a step of Newton's where the
/// processor has one, which takes a third of the time of a division.
inline Vector reciprocalOf(Vector x) {
#ifdef __AVX512F__
  Vector estimate = (Vector)_mm512_rcp14_ps((__m512)x);
  return estimate * (1.0f - x * estimate) + estimate;
#else
  return 1.0f / x;
#endif
}

/// 1 / (1 + e^-x), from a power that is at most 1.
inline Vector logistic(Vector x) {
  Vector power = boundedExp(-__builtin_elementwise_abs(x));
  return (x < 0 ? power : (Vector)1.0f) * reciprocalOf(1.0f + power);
}

/// erf to 1.5e-7: x p(u) for |x| up to 3.7, beyond which it is 1 to that, with u = 2 (x / 3.7)^2 - 1. p is the
/// least-squares fit of degree 15 at 4000 Chebyshev points, each difference counting (0.05 + |x|) times.
inline Vector vectorErf(Vector x) {
  constexpr float coefficients[] = {0.382137477f,   -0.190468028f,    0.140795261f,    -0.112637401f,
                                    0.0905249342f,  -0.0704947188f,   0.0521255508f,   -0.0360670276f,
                                    0.023144152f,   -0.0141264508f,   0.00837123021f,  -0.00414030487f,
                                    0.00148388208f, -0.000869120471f, 0.000742192031f, -0.000251393853f};
  constexpr float limit = 3.7f;
  Vector inside = x < -limit ? (Vector)-limit : x > limit ? (Vector)limit : x; // what is not a number stays
  Vector u = inside * inside * (2 / (limit * limit)) - 1.0f, p = coefficients[15];
#pragma clang loop unroll(full)
  for (int i = 14; i >= 0; --i)
    p = p * u + coefficients[i];
  return inside * p;
}

template <int64_t ACTIVATION> Vector activate(Vector x) {
  if constexpr (ACTIVATION == kRelu)
    return x > 0 ? x : 0 * x;
  else if constexpr (ACTIVATION == kSilu)
    return x * logistic(x);
  else if constexpr (ACTIVATION == kGeluErf)
    return 0.5f * x * (1.0f + vectorErf(x * 0.70710678f));
  else if constexpr (ACTIVATION == kGeluTanh) // 0.5 (1 + tanh u) is the logistic function of 2u
    return x * logistic(1.59576912f * (x + 0.044715f * x * x * x));
  else if constexpr (ACTIVATION == kHardSwish) {
    Vector gate = x * (1.0f / 6.0f) + 0.5f;
    gate = gate < 0.0f ? (Vector)0.0f : gate;
    return x * (gate > 1.0f ? (Vector)1.0f : gate);
  } else
    return x;
}

template <int64_t ACTIVATION> struct KnownActivation {
  static constexpr int64_t kNumber = ACTIVATION;
};

/// Calls `body` with the KnownActivation of a number, so that loops over rows do not ask for it.
template <typename Body> void withActivation(int64_t activation, const Body &body) {
  switch (activation) {
  case kRelu:
    return body(KnownActivation<kRelu>());
  case kSilu:
    return body(KnownActivation<kSilu>());
  case kGeluErf:
    return body(KnownActivation<kGeluErf>());
  case kGeluTanh:
    return body(KnownActivation<kGeluTanh>());
  default:
    return body(KnownActivation<kIdentity>());
  }
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_ACTIVATION_H
