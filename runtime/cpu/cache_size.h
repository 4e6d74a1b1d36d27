// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels size their blocks from.

#ifndef HONE_RUNTIME_CPU_CACHE_SIZE_H
#define HONE_RUNTIME_CPU_CACHE_SIZE_H

#include <stdint.h>

namespace hone::cpu {

/// Bytes of a core's L2 cache as the system reports it; 2 MiB where it does not.
int64_t l2CacheBytes();

/// Whether the last call of this by the thread was for the same weight, as in the steps of a recurrent layer: its caches
/// hold as much of the weight then as they can.
bool isReadAgain(const void *weight);

} // namespace hone::cpu

#endif // HONE_RUNTIME_CPU_CACHE_SIZE_H
