// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys and values as integers in blocks (packing/rounded_blocks.h): how a step is read, and what belongs to its positions.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROUNDED_CACHE_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROUNDED_CACHE_H

#include "../../packing/rounded_blocks.h"
#include "blocked_cache.h"

namespace {

/// An element is step · level, of a signed byte, or base + step · level, of four bits.
template <int BITS> struct RoundedCache {
  using Element = uint8_t;
  static constexpr int kBlockWord = hone::cpu::RoundedKeyLayout::kWord, kBits = BITS;
  static constexpr int kPerByte = 8 / BITS;
  static constexpr bool kIsSigned = BITS == 8, kHasBases = !kIsSigned;
};

using I8Cache = RoundedCache<8>;
using U4Cache = RoundedCache<4>;

template <int BITS> struct BlockedCache<RoundedCache<BITS>> {
  static int64_t keyElements(int64_t, int64_t size) { return hone::cpu::RoundedKeyLayout(BITS, size).unitBytes(); }
  static int64_t valueElements(int64_t, int64_t size) { return hone::cpu::RoundedValueLayout(BITS, size).unitBytes(); }
};

template <typename Cache, int UNITS> using RoundedStep = BlockedStep<Cache, Cache::kBlockWord, UNITS>;

/// Steps and bases of the positions of a step, as floats.
template <typename Cache, int UNITS> class StepNumbers {
public:
  /// `levelBytes` are those of a unit before its numbers.
  void take(const uint8_t *const (&units)[UNITS], int64_t levelBytes) {
    for (int unit = 0; unit < UNITS; ++unit)
      for (int part = 0; part < Cache::kBlockWord; ++part) {
        const uint8_t *from = units[unit] + levelBytes + part * kLanes * kNumberBytes;
        int piece = unit * Cache::kBlockWord + part;
        store(steps[piece], loadNumbers(from));
        if constexpr (Cache::kHasBases)
          store(bases[piece], loadNumbers(from + hone::cpu::kCacheBlockPositions * kNumberBytes));
      }
  }

  /// Divides the steps by the largest, which is the result; where one is no number, so is that.
  float normalize() {
    Words most = 0; // of numbers from 0 on, and those that are none, the largest has the largest bits
    for (const auto &some : steps) {
      auto bits = loadAs<Words>(some);
      most = bits > most ? bits : most;
    }
    uint32_t bits = __builtin_reduce_max(most);
    float largest = loadAs<float>(&bits), inverse = largest > kLeast ? 1 / largest : 0.0f;
    for (auto &some : steps)
      store(some, load(some) * inverse);
    return largest;
  }

  Vector step(int piece) const { return load(steps[piece]); }
  Vector base(int piece) const { return load(bases[piece]); }

private:
  static constexpr int kPieces = UNITS * Cache::kBlockWord;
  static constexpr int64_t kNumberBytes = 2;
  static constexpr float kLeast = 1e-30f; // what is smaller counts as 0

  static Vector loadNumbers(const uint8_t *from) { return Bf16Cache::load16(reinterpret_cast<const uint16_t *>(from)); }

  alignas(64) float steps[kPieces][kLanes], bases[kPieces][kLanes];
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROUNDED_CACHE_H
