// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys and values as integers of 8 or 4 bits in blocks: what #hone.quantized_kv says of each position of a head, in the
// order in which products of bytes take it. A KV block of 64 positions is its codes, then its scales, and with 4 bits its
// bases, as bf16.

#ifndef HONE_CPU_PACKING_QUANTIZED_BLOCKS_H
#define HONE_CPU_PACKING_QUANTIZED_BLOCKS_H

#include "hone/cpu/packing/cache_blocks.h"

namespace hone::cpu {

/// Bytes of codes lie as elements of `Blocked` with words of four. A byte has one code of 8 bits, two's complement, or
/// two of 4 bits, the lower one of element d and the upper one of element d + RUN, where d / RUN is even. Everything is
/// counted in bytes.
template <typename Blocked, int64_t RUN> struct QuantizedKvLayout {
  static constexpr int64_t kWord = 4, kBlock = kCacheBlockPositions;

  int64_t perByte; // codes
  Blocked bytes;

  constexpr QuantizedKvLayout(int64_t bits, int64_t size)
      : perByte(8 / bits), bytes(kWord, (size + RUN * perByte - 1) / (RUN * perByte) * RUN) {}

  /// Of a position, on average.
  constexpr int64_t positionBytes() const { return bytes.width + 2 * perByte; }
  constexpr int64_t blockBytes() const { return kBlock * positionBytes(); }

  /// Where the code of an element of a position is: in the byte at the sum of the two, from bit shiftOf(d) on.
  constexpr int64_t ofPosition(int64_t position) const {
    return position / kBlock * blockBytes() + bytes.ofPosition(position % kBlock);
  }
  constexpr int64_t ofElement(int64_t d) const { return bytes.ofElement(d / (RUN * perByte) * RUN + d % RUN); }
  constexpr int64_t shiftOf(int64_t d) const { return d / RUN % perByte * 4; }

  constexpr int64_t ofScale(int64_t position) const {
    return position / kBlock * blockBytes() + kBlock * bytes.width + 2 * (position % kBlock);
  }
  constexpr int64_t ofBase(int64_t position) const { return ofScale(position) + 2 * kBlock; }
};

using QuantizedKeyLayout = QuantizedKvLayout<BlockedKeyLayout, 4>;
using QuantizedValueLayout = QuantizedKvLayout<BlockedValueLayout, kCacheLanes>;

} // namespace hone::cpu

#endif // HONE_CPU_PACKING_QUANTIZED_BLOCKS_H
