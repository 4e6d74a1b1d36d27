// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that kernels work in.

#ifndef HONE_RUNTIME_CPU_SCRATCH_MEMORY_H
#define HONE_RUNTIME_CPU_SCRATCH_MEMORY_H

#include <setjmp.h>
#include <stdint.h>

namespace hone::cpu {

/// Leaves the innermost scope of this thread. Ends the process where there is none.
[[noreturn]] void failScratch(uint64_t bytes);

/// Where this thread goes on when a kernel has no memory, as kernels are compiled without exceptions. Whoever makes a scope calls
/// setjmp(scope.exit) in the same function; what returns there is a failure. The scratch memory that the thread allocated in the scope
/// is freed then, and no destructor runs between, so that nothing but Scratch may need one. A construct of OpenMP is not left in this
/// way: each thread of a parallel region has a scope of its own in it (kernels/parts.h).
class ScratchScope {
public:
  ScratchScope();
  ~ScratchScope();
  ScratchScope(const ScratchScope &) = delete;
  ScratchScope &operator=(const ScratchScope &) = delete;

  /// After a failure, the bytes that there was no memory for.
  uint64_t lackingBytes() const { return lacking; }

  jmp_buf exit;

private:
  friend void failScratch(uint64_t bytes);
  ScratchScope *outer;
  uint64_t firstBlock, lacking = 0;
};

/// Memory for `count` floats, aligned to 64 bytes, uninitialised. Where there is none, failScratch().
/// A thread keeps a few blocks that it freed, so that kernels called again and again do not go to the operating system.
float *allocateScratch(int64_t count);

/// Null is nothing. Called by the thread that allocated.
void freeScratch(float *memory);

} // namespace hone::cpu

#endif // HONE_RUNTIME_CPU_SCRATCH_MEMORY_H
