// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products by oneDNN, which has code for each ISA of its own.

#include "cpu/sgemm.h"

#include "cpu/scratch_memory.h"

#include <cstdio>
#include <cstdlib>
#include <dnnl.h>

namespace hone::cpu {

bool trySgemm(int64_t m, int64_t n, int64_t k, const DenseMatrix &a, const DenseMatrix &b, float beta,
              const DenseMatrix &c) {
  dnnl_status_t status = dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data,
                                    a.leading, b.data, b.leading, beta, c.data, c.leading);
  if (status == dnnl_success || status == dnnl_out_of_memory)
    return status == dnnl_success;
  std::fprintf(stderr, "hone: oneDNN refused a product of %lld x %lld x %lld (status %d)\n", static_cast<long long>(m),
               static_cast<long long>(n), static_cast<long long>(k), status);
  std::abort();
}

void sgemm(int64_t m, int64_t n, int64_t k, const DenseMatrix &a, const DenseMatrix &b, float beta,
           const DenseMatrix &c) {
  if (!trySgemm(m, n, k, a, b, beta, c))
    failScratch(static_cast<uint64_t>(m) * static_cast<uint64_t>(n) * sizeof(float)); // about what it works in
}

} // namespace hone::cpu
