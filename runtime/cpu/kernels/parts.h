// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What each thread of a parallel region does, where it may find no memory for it.

#ifndef HONE_RUNTIME_CPU_KERNELS_PARTS_H
#define HONE_RUNTIME_CPU_KERNELS_PARTS_H

#include "../scratch_memory.h"

namespace {

/// What becomes of the threads of a region. No failure leaves the region itself: the thread that began it fails after it.
class Parts {
public:
  /// Runs `work`, which allocates Scratch and contains no construct of OpenMP that all threads have to meet.
  template <typename Work> void run(Work work) {
    run(work, [] {});
  }

  /// Runs `work`, which allocates all of its Scratch before the first construct that all threads have to meet. Where there is no
  /// memory for that, `meet`, which meets these constructs without doing anything.
  template <typename Work, typename Meet> void run(Work work, Meet meet) {
    if (uint64_t bytes = attempt(work)) {
      __atomic_store_n(&lacking, bytes, __ATOMIC_RELAXED);
      meet();
    }
  }

  /// After the region.
  void finish() const {
    if (lacking != 0)
      hone::cpu::failScratch(lacking);
  }

private:
  /// A function that calls setjmp is compiled with care; what takes the time is in one of its own.
  template <typename Work> [[gnu::noinline]] static void call(Work &work) { work(); }

  template <typename Work> [[gnu::noinline]] static uint64_t attempt(Work &work) {
    hone::cpu::ScratchScope scope;
    if (setjmp(scope.exit) != 0)
      return scope.lackingBytes();
    call(work);
    return 0;
  }

  uint64_t lacking = 0; // bytes; 0 is nothing
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_PARTS_H
