// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An allocator whose n-th allocation finds no memory, in place of that of the process: libraries get it too.

#ifndef HONE_TEST_UNIT_RUNTIME_FAILING_ALLOCATOR_H
#define HONE_TEST_UNIT_RUNTIME_FAILING_ALLOCATOR_H

#include <atomic>
#include <cstdint>

namespace hone::test {

struct Injection {
  std::atomic<bool> isArmed = false; // allocations are counted, and may fail
  std::atomic<int64_t> allocations = 0, live = 0;
  int64_t fails = -1; // the number of the allocation that fails, and all after it where `persists`
  bool persists = false;
};
extern Injection injection;

/// Lets allocations of OpenMP succeed, which ends the process where it has no memory; false where it is no library.
bool spareOpenMp();

} // namespace hone::test

#endif // HONE_TEST_UNIT_RUNTIME_FAILING_ALLOCATOR_H
