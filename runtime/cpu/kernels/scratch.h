// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scratch memory that frees itself.

#ifndef HONE_RUNTIME_CPU_KERNELS_SCRATCH_H
#define HONE_RUNTIME_CPU_KERNELS_SCRATCH_H

#include "../scratch_memory.h"

namespace {

/// Uninitialised memory for `count` elements, aligned to 64 bytes; none where the count is 0.
template <typename Element> class Scratch {
public:
  explicit Scratch(int64_t count)
      : memory(count == 0 ? nullptr : hone::cpu::allocateScratch((count * sizeof(Element) + 3) / sizeof(float))) {}
  ~Scratch() { hone::cpu::freeScratch(memory); }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  Element *data() const { return reinterpret_cast<Element *>(memory); }

private:
  float *memory;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_SCRATCH_H
