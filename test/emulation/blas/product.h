// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the emulated cuBLASLt says to its kernel.

#ifndef HONE_TEST_EMULATION_BLAS_PRODUCT_H
#define HONE_TEST_EMULATION_BLAS_PRODUCT_H

/// d[n][m] = act(sum over k of a[m][k] · b[n][k] + beta · c[n][m] + bias[m]): all matrices by columns, a transposed.
struct Product {
  const char *a, *b, *c, *bias;
  char *d;
  float *workspace; // a number an element of d, which sums pass through
  long long m, n, k, aStride, bStride, cStride, dStride;
  int type, dType; // cudaDataType_t of a and b, and of c, d and bias
  int epilogue;
  float alpha, beta;
};

#endif // HONE_TEST_EMULATION_BLAS_PRODUCT_H
