// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/cache_size.h"

#include <utility>

#include <unistd.h>

namespace hone::cpu {

int64_t l2CacheBytes() {
  static const int64_t bytes = [] {
    long reported = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return reported > 0 ? int64_t{reported} : int64_t{2} << 20;
  }();
  return bytes;
}

bool isReadAgain(const void *weight) {
  static thread_local const void *last = nullptr;
  return std::exchange(last, weight) == weight;
}

} // namespace hone::cpu
