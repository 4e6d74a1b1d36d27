// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long something took.

#ifndef HONE_RUNTIME_CORE_SECONDS_H
#define HONE_RUNTIME_CORE_SECONDS_H

#include <chrono>

namespace hone::rt {

inline double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_SECONDS_H
