// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a session keeps keys and values for attention on the CPU: in blocks that kernels multiply as they lie. The state
// of a session writes them (runtime/core), kernels read them (runtime/cpu/kernels/attention).

#ifndef HONE_CPU_PACKING_CACHE_BLOCKS_H
#define HONE_CPU_PACKING_CACHE_BLOCKS_H

#include "hone/runtime/program.h"

namespace hone::cpu {

constexpr int64_t kCacheLanes = 16;          // positions or elements that a vector of 32-bit words has
constexpr int64_t kCacheBlockPositions = 64; // a cache has room for a multiple of so many positions

/// Elements that a word has: two bf16, as products of pairs take them, else one, which may be narrower than 32 bits.
constexpr int64_t cacheWordElements(int32_t dtype) { return dtype == HONE_BF16 ? 2 : 1; }

/// Keys [position / 16][word of a key][16 positions][elements of a word]. A key's last word is filled up with zeros.
struct BlockedKeyLayout {
  int64_t word, width; // elements of a word, and of a key with what fills it up

  constexpr BlockedKeyLayout(int64_t word, int64_t size) : word(word), width((size + word - 1) / word * word) {}

  /// Where an element of a position is, counted in elements from the first position: the sum of the two.
  constexpr int64_t ofPosition(int64_t position) const {
    return position / kCacheLanes * kCacheLanes * width + position % kCacheLanes * word;
  }
  constexpr int64_t ofElement(int64_t d) const { return d / word * kCacheLanes * word + d % word; }
};

/// Values [position / 16 word][16 elements of a value][position % 16][element % 16][elements of a word]: a word has an
/// element of positions i, 16 + i, … of its block. Values are filled up with zeros to a multiple of 16 elements.
struct BlockedValueLayout {
  int64_t word, width;

  constexpr BlockedValueLayout(int64_t word, int64_t size)
      : word(word), width((size + kCacheLanes - 1) / kCacheLanes * kCacheLanes) {}

  constexpr int64_t ofPosition(int64_t position) const {
    int64_t positions = kCacheLanes * word, inside = position % positions;
    return position / positions * positions * width + inside % kCacheLanes * kCacheLanes * word + inside / kCacheLanes;
  }
  constexpr int64_t ofElement(int64_t d) const {
    return d / kCacheLanes * kCacheLanes * kCacheLanes * word + d % kCacheLanes * word;
  }
};

} // namespace hone::cpu

#endif // HONE_CPU_PACKING_CACHE_BLOCKS_H
