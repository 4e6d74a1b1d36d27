// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arithmetic of sampling, for the host and for device code, which give the same tokens: the exponential function is made of IEEE
// additions and multiplications that no compiler contracts (the host's are compiled with -ffp-contract=off), and what is
// summed are integers, whose sums do not depend on the order.

#ifndef HONE_SAMPLING_ARITHMETIC_H
#define HONE_SAMPLING_ARITHMETIC_H

#include <stdint.h>

#ifdef __CUDACC__
#define HONE_SAMPLING __host__ __device__ inline
#else
#include <bit>
#define HONE_SAMPLING inline
#endif

namespace hone::sampling {

HONE_SAMPLING double productOf(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

HONE_SAMPLING double sumOf(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

HONE_SAMPLING uint64_t bitsOf(double x) {
#ifdef __CUDA_ARCH__
  return static_cast<uint64_t>(__double_as_longlong(x));
#elif defined(__CUDACC__)
  return 0; // a stub that nobody calls
#else
  return std::bit_cast<uint64_t>(x);
#endif
}

HONE_SAMPLING double doubleOf(uint64_t bits) {
#ifdef __CUDA_ARCH__
  return __longlong_as_double(static_cast<long long>(bits));
#elif defined(__CUDACC__)
  return 0; // a stub that nobody calls
#else
  return std::bit_cast<double>(bits);
#endif
}

/// 2^exponent, for -1022 … 1023.
HONE_SAMPLING double powerOfTwo(int exponent) { return doubleOf(static_cast<uint64_t>(exponent + 1023) << 52); }

/// exp(x) for x <= 0 to within 2 units in the last place; 0 below -708.
HONE_SAMPLING double portableExp(double x) {
  constexpr double kLowest = -708, kLog2E = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33; // Cody and Waite's split of ln 2
  // 1/13!, 1/12!, …, 1/0!: of the Taylor series, enough for |r| <= ln(2) / 2.
  constexpr double kTerms[] = {0x1.6124613a86d09p-33,
                               0x1.1eed8eff8d898p-29,
                               0x1.ae64567f544e4p-26,
                               0x1.27e4fb7789f5cp-22,
                               0x1.71de3a556c734p-19,
                               0x1.a01a01a01a01ap-16,
                               0x1.a01a01a01a01ap-13,
                               0x1.6c16c16c16c17p-10,
                               0x1.1111111111111p-7,
                               0x1.5555555555555p-5,
                               0x1.5555555555555p-3,
                               0.5,
                               1,
                               1};
  constexpr double kRounder = 0x1.8p52; // added and taken away again, it leaves the nearest integer
  if (x < kLowest)
    return 0;
  double n = sumOf(sumOf(productOf(x, kLog2E), kRounder), -kRounder);
  double r = sumOf(sumOf(x, productOf(-n, kLn2High)), productOf(-n, kLn2Low));
  double sum = kTerms[0];
#pragma unroll
  for (int i = 1; i < 14; ++i)
    sum = sumOf(kTerms[i], productOf(sum, r));
  return productOf(sum, powerOfTwo(static_cast<int>(n)));
}

/// A logit whose token is in the history.
HONE_SAMPLING double penalized(double logit, double penalty) {
  return logit < 0 ? productOf(logit, penalty) : logit / penalty;
}

/// Weights are integers, that of the largest logit 2^weightBits; those of a whole vocabulary add up to less than 2^62.
HONE_SAMPLING int weightBits(int64_t vocabulary) {
  int bits = 62;
  for (; vocabulary > 0; vocabulary /= 2)
    --bits;
  return bits;
}

/// exp((logit - largest) / temperature), times 2^bits, rounded down.
HONE_SAMPLING uint64_t weightOf(double logit, double largest, double temperature, int bits) {
  double share = portableExp(sumOf(logit, -largest) / temperature);
  return static_cast<uint64_t>(productOf(share, powerOfTwo(bits)));
}

/// The least integer that is not below share · total, for shares of 0 … 1.
HONE_SAMPLING uint64_t shareOf(uint64_t total, double share) {
  double product = productOf(share, static_cast<double>(total));
  auto whole = static_cast<uint64_t>(product);
  return static_cast<double>(whole) < product ? whole + 1 : whole;
}

/// Larger for larger logits; the same for both zeros.
HONE_SAMPLING uint64_t orderOf(double logit) {
  uint64_t bits = bitsOf(sumOf(logit, 0.0));
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}

/// Where `draw`, of 2^64, falls in 0 … total - 1.
HONE_SAMPLING uint64_t placeOf(uint64_t draw, uint64_t total) {
#ifdef __CUDA_ARCH__
  return __umul64hi(draw, total);
#else
  return static_cast<uint64_t>(static_cast<unsigned __int128>(draw) * total >> 64);
#endif
}

/// What a device gives instead of a token where it cannot choose one; `id` of the first logit that is no number or infinite.
constexpr int64_t kNoFiniteLogit = -1;
HONE_SAMPLING int64_t badLogitCode(int64_t id, bool isInfinite) { return -2 - (2 * id + (isInfinite ? 1 : 0)); }

} // namespace hone::sampling

#undef HONE_SAMPLING

#endif // HONE_SAMPLING_ARITHMETIC_H
