// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that kernels work in.

#ifndef HONE_RUNTIME_CPU_SCRATCH_MEMORY_H
#define HONE_RUNTIME_CPU_SCRATCH_MEMORY_H

#include <stdint.h>

namespace hone::cpu {

/// Memory for `count` floats, aligned to 64 bytes, uninitialised. Ends the process where there is none: kernels cannot
/// fail. A thread keeps a few blocks that it freed, so that kernels called again and again do not go to the operating
/// system.
float *allocateScratch(int64_t count);

/// Null is nothing. Called by the thread that allocated.
void freeScratch(float *memory);

} // namespace hone::cpu

#endif // HONE_RUNTIME_CPU_SCRATCH_MEMORY_H
