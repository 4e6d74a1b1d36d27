// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tasks of a parallel region that whichever thread is free takes.

#ifndef HONE_RUNTIME_CPU_KERNELS_TASKS_H
#define HONE_RUNTIME_CPU_KERNELS_TASKS_H

#include <stdint.h>

namespace {

/// What OpenMP's dynamic schedule is for. That takes 10 us a loop with two threads, where the region takes 2 us, and a
/// layer of a small model that multiplies one row as long as both.
class Tasks {
public:
  explicit Tasks(int64_t count) : count(count) {}

  /// Gives the thread that calls it a task of its own, from 0 on; false when there is none left. Threads wait for each
  /// other only where their region says so.
  bool take(int64_t &task) {
    task = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    return task < count;
  }

private:
  int64_t count, next = 0;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_TASKS_H
