// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops whose iterations are independent, over all threads.

#ifndef HONE_RUNTIME_CPU_KERNELS_PARALLEL_FOR_H
#define HONE_RUNTIME_CPU_KERNELS_PARALLEL_FOR_H

#include <omp.h>
#include <stdint.h>

namespace {

/// Calls `body(i)` for all i below `count`: where it `pays`, each thread for a contiguous share, otherwise the calling thread alone.
/// In place of OpenMP's own loops, which cost a small model a quarter of its decode step: libomp as Debian builds it formats a trace
/// message at the start of each, also where the loop has one thread.
template <typename Body> void parallelFor(int64_t count, bool pays, Body body) {
  if (!pays || omp_get_max_threads() == 1) {
    for (int64_t i = 0; i < count; ++i)
      body(i);
    return;
  }
#pragma omp parallel
  {
    int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    for (int64_t i = count * thread / threads, end = count * (thread + 1) / threads; i < end; ++i)
      body(i);
  }
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_PARALLEL_FOR_H
