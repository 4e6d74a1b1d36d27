// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parallel regions of the linear kernels, and loops that the threads of one share.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_REGION_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_REGION_H

#include "../parts.h"

#include <omp.h>
#include <stdint.h>

namespace {

template <typename Work> [[gnu::noinline]] void runAlone(Work &work) { work(); }

/// A region in which every thread runs `work`, and one without memory for it `meet`, as `Parts::run` has both. The calling thread alone
/// begins none, and fails where it fails: a region of libomp, as Debian builds it, formats a trace message, which costs a layer of a
/// small model as much as its products.
template <typename Work, typename Meet> void runRegion(Work work, Meet meet) {
  if (omp_get_max_threads() == 1 && omp_get_num_threads() == 1)
    return runAlone(work);
  Parts threads;
#pragma omp parallel
  threads.run(work, meet);
  threads.finish();
}

template <typename Work> void runRegion(Work work) {
  runRegion(work, [] {});
}

/// In a region, by all of its threads together: calls `body(i)` for all i below `count`, each thread for a contiguous share, and goes on
/// when all are done.
template <typename Body> void shareEvenly(int64_t count, Body body) {
  if (omp_get_num_threads() == 1) {
    for (int64_t i = 0; i < count; ++i)
      body(i);
    return;
  }
#pragma omp for schedule(static)
  for (int64_t i = 0; i < count; ++i)
    body(i);
}

/// The same, each i by a thread that is free.
template <typename Body> void shareAsFree(int64_t count, Body body) {
  if (omp_get_num_threads() == 1) {
    for (int64_t i = 0; i < count; ++i)
      body(i);
    return;
  }
#pragma omp for schedule(dynamic)
  for (int64_t i = 0; i < count; ++i)
    body(i);
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_REGION_H
