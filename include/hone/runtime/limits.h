// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Limits of what a caller can ask of the runtime.

#ifndef HONE_RUNTIME_LIMITS_H
#define HONE_RUNTIME_LIMITS_H

#include <cstdint>

namespace hone::rt {

/// Most threads that a call can be given: OpenMP ends the process where the system has not as many as it is told to use.
constexpr int64_t kMostThreads = 4096;

} // namespace hone::rt

#endif // HONE_RUNTIME_LIMITS_H
