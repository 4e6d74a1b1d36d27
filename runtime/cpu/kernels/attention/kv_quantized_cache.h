// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys and values as integers in blocks (packing/quantized_blocks.h): how a step is read, and what belongs to its
// positions.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_CACHE_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_CACHE_H

#include "hone/cpu/packing/quantized_blocks.h"
#include "kv_blocked_cache.h"

namespace {

/// An element is step · code, of a signed byte, or base + step · code, of four bits.
template <int BITS> struct QuantizedCache {
  using Element = uint8_t;
  static constexpr int kBlockWord = hone::cpu::QuantizedKeyLayout::kWord, kBits = BITS;
  static constexpr int kPerByte = 8 / BITS;
  static constexpr bool kIsSigned = BITS == 8, kHasBases = !kIsSigned;
};

using I8Cache = QuantizedCache<8>;
using U4Cache = QuantizedCache<4>;

template <int BITS> struct BlockedCache<QuantizedCache<BITS>> {
  static int64_t keyElements(int64_t, int64_t size) { return hone::cpu::QuantizedKeyLayout(BITS, size).blockBytes(); }
  static int64_t valueElements(int64_t, int64_t size) {
    return hone::cpu::QuantizedValueLayout(BITS, size).blockBytes();
  }
};

template <typename Cache, int UNITS> using QuantizedStep = BlockedStep<Cache, Cache::kBlockWord, UNITS>;

/// Steps and bases of the positions of a step, as floats.
template <typename Cache, int UNITS> class StepNumbers {
public:
  /// `codeBytes` are those of a KV micro-block before its numbers.
  void take(const uint8_t *const (&units)[UNITS], int64_t codeBytes) {
    for (int unit = 0; unit < UNITS; ++unit)
      for (int part = 0; part < Cache::kBlockWord; ++part) {
        const uint8_t *from = units[unit] + codeBytes + part * kLanes * kNumberBytes;
        int piece = unit * Cache::kBlockWord + part;
        store(steps[piece], loadNumbers(from));
        if constexpr (Cache::kHasBases)
          store(bases[piece], loadNumbers(from + hone::cpu::kCacheBlockPositions * kNumberBytes));
      }
  }

  Vector step(int piece) const { return load(steps[piece]); }
  Vector base(int piece) const { return load(bases[piece]); }

private:
  static constexpr int kPieces = UNITS * Cache::kBlockWord;
  static constexpr int64_t kNumberBytes = 2;

  static Vector loadNumbers(const uint8_t *from) { return Bf16Cache::load16(reinterpret_cast<const uint16_t *>(from)); }

  alignas(64) float steps[kPieces][kLanes], bases[kPieces][kLanes];
};

/// Steps of the values of a step, divided by the largest; where one is no number, so is that.
template <typename Cache, int UNITS> struct ValueSteps {
  static constexpr int kPieces = UNITS * Cache::kBlockWord;

  float maximum;

  void take(const StepNumbers<Cache, UNITS> &numbers) {
    take(numbers, [](int) { return (Integers)-1; });
  }

  /// Those of keys whose logits are minus infinity are left out: what other rows see must not change how the weights of
  /// this one are rounded.
  void take(const StepNumbers<Cache, UNITS> &numbers, const Vector (&logits)[kPieces]) {
    take(numbers, [&](int piece) { return logits[piece] != (Vector)-__builtin_inff(); });
  }

  Vector operator[](int piece) const { return load(steps[piece]); }

private:
  static constexpr float kLeast = 1e-30f; // what is smaller counts as 0

  template <typename Mask>
  void take(const StepNumbers<Cache, UNITS> &numbers, const Mask &isCounted) {
    Words most = 0; // of numbers from 0 on, and those that are none, the largest has the largest bits
    for (int piece = 0; piece < kPieces; ++piece) {
      Vector some = numbers.step(piece);
      Words bits = loadAs<Words>(&some) & (Words)isCounted(piece);
      most = bits > most ? bits : most;
      store(steps[piece], asFloats(bits));
    }
    uint32_t bits = __builtin_reduce_max(most);
    maximum = loadAs<float>(&bits);
    float inverse = maximum > kLeast ? 1 / maximum : 0.0f;
    for (auto &some : steps)
      store(some, load(some) * inverse);
  }

  alignas(64) float steps[kPieces][kLanes];
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_CACHE_H
