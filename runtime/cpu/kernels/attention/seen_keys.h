// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The keys that rows see where more than an interval decides that, and lists of the blocks that are worked on.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_SEEN_KEYS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_SEEN_KEYS_H

#include <stdint.h>

namespace {

/// The keys that rows of a block see, where more than an interval decides that. Where queries have lists of blocks, the
/// steps through keys take theirs from a list.
struct SeenKeys {
  const uint64_t *words = nullptr; // bit j is set iff one of the rows sees key j; null where intervals decide
  int64_t *numbers = nullptr;      // memory for a list; null where queries have none

  /// Lists the blocks of `size` keys, which divides 64, that hold keys of [begin, end) which are seen; returns how many.
  int64_t list(int64_t begin, int64_t end, int64_t size) const {
    int64_t count = 0;
    for (int64_t block = begin / size; block * size < end; ++block)
      if ((words[block * size / 64] >> block * size % 64 & (~uint64_t{0} >> (64 - size))) != 0)
        numbers[count++] = block;
    return count;
  }
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_SEEN_KEYS_H
