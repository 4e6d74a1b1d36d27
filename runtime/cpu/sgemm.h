// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels take from outside their ISA: the dense product of large matrices.

#ifndef HONE_RUNTIME_CPU_SGEMM_H
#define HONE_RUNTIME_CPU_SGEMM_H

#include <stdint.h>

namespace hone::cpu {

/// A row-major matrix, or a column-major one where `transposed`: element (i, j) is data[i * leading + j], or
/// data[j * leading + i].
struct DenseMatrix {
  float *data;
  bool transposed;
  int64_t leading;
};

/// c[M, N] = a[M, K] · b[K, N] + beta · c, for M, N, K > 0; c is row-major. Parallel unless called in a parallel
/// region. False where there is no memory to work in; c is then undefined.
bool trySgemm(int64_t m, int64_t n, int64_t k, const DenseMatrix &a, const DenseMatrix &b, float beta,
              const DenseMatrix &c);

/// The same for kernels: without memory, failScratch().
void sgemm(int64_t m, int64_t n, int64_t k, const DenseMatrix &a, const DenseMatrix &b, float beta,
           const DenseMatrix &c);

} // namespace hone::cpu

#endif // HONE_RUNTIME_CPU_SGEMM_H
