// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The emulated cuBLASLt's two kernels: sums go through the workspace, as those of a library that divides inputs among blocks do.

#include "product.h"

#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE static __attribute__((device))

DEVICE long long thread() {
  return static_cast<long long>(__nvvm_read_ptx_sreg_ctaid_x()) * __nvvm_read_ptx_sreg_ntid_x() +
         __nvvm_read_ptx_sreg_tid_x();
}

DEVICE float load(const char *data, long long i, int type) {
  if (type == 0)
    return reinterpret_cast<const float *>(data)[i];
  if (type == 2)
    return static_cast<float>(reinterpret_cast<const _Float16 *>(data)[i]);
  unsigned bits = static_cast<unsigned>(reinterpret_cast<const unsigned short *>(data)[i]) << 16;
  return __builtin_bit_cast(float, bits);
}

DEVICE void store(char *data, long long i, int type, float value) {
  if (type == 0) {
    reinterpret_cast<float *>(data)[i] = value;
  } else if (type == 2) {
    reinterpret_cast<_Float16 *>(data)[i] = static_cast<_Float16>(value);
  } else {
    auto bits = __builtin_bit_cast(unsigned, value); // to the nearest, of two to the even one
    reinterpret_cast<unsigned short *>(data)[i] = static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

/// tanh by its continued fraction's exponential: (e - 1) / (e + 1) with e = exp(2 v).
DEVICE float tanhOf(float v) {
  if (v > 9)
    return 1;
  if (v < -9)
    return -1;
  float e = __nvvm_ex2_approx_f(2 * 1.44269504f * v);
  return (e - 1) / (e + 1);
}

KERNEL emulated_product(Product p) {
  long long i = thread();
  if (i >= p.m * p.n)
    return;
  long long row = i % p.m, column = i / p.m;
  float sum = 0;
  for (long long k = 0; k < p.k; ++k)
    sum += load(p.a, row * p.aStride + k, p.type) * load(p.b, column * p.bStride + k, p.type);
  p.workspace[i] = sum;
}

KERNEL emulated_epilogue(Product p) {
  long long i = thread();
  if (i >= p.m * p.n)
    return;
  long long row = i % p.m, column = i / p.m;
  float value = p.alpha * p.workspace[i];
  if (p.beta != 0)
    value += p.beta * load(p.c, column * p.cStride + row, p.dType);
  if (p.epilogue & 4)
    value += load(p.bias, row, p.dType);
  if (p.epilogue & 2)
    value = value > 0 ? value : 0;
  if (p.epilogue & 32)
    value = 0.5f * value * (1 + tanhOf(0.79788456f * (value + 0.044715f * value * value * value)));
  store(p.d, column * p.dStride + row, p.dType, value);
}
