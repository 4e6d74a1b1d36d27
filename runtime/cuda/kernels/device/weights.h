// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: how each format of weights is read, 16 bytes of an output at once, and becomes operand A of the matrix units.
// A chunk is what four lanes read of an output; it has parts of 32 inputs, of which a lane holds eight that follow each other.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H

#include "../linear/few_rows.h"
#include "matrix_units.h"
#include "numbers.h"

namespace hone::cuda {

/// 0x4300 is 128 in bf16, with steps of 1: a level in its lowest bits makes 128 + level. Levels i and i + 4 are a pair.
__device__ inline void expandNibbles(uint32_t word, uint32_t zero, uint32_t (&pairs)[4]) {
  uint32_t minus = (0xc300u + zero) * 0x10001u; // -(128 + zero), twice
#pragma unroll
  for (int i = 0; i < 4; ++i)
    pairs[i] = multiplyAddBf16((word >> 4 * i & 0x000f000f) | 0x43004300, 0x3f803f80, minus);
}

/// Bytes below 2^23 in f32, with steps of 1; what is left when 2^23 + zero is taken away is exact in the upper half.
__device__ inline void expandBytes(uint32_t low, uint32_t high, uint32_t zero, uint32_t (&pairs)[4]) {
  float minus = __uint_as_float(0x4b000000u + zero);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint32_t word = i < 2 ? low : high;
    float a = __uint_as_float(__byte_perm(word, 0x4b000000, 0x7540 + 2 * (i % 2))) - minus;
    float b = __uint_as_float(__byte_perm(word, 0x4b000000, 0x7540 + 2 * (i % 2) + 1)) - minus;
    pairs[i] = __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x7632);
  }
}

/// Which of the eight inputs of a lane are a pair: 2i and 2i + 1, or i and i + 4.
enum class PairOrder { Neighbours, Halves };

/// 16 bytes of weights of bf16 or f16: eight inputs.
template <bool IsHalf> struct PlainWeight {
  static constexpr int kParts = 1;
  static constexpr bool kHasScales = false, kIsHalf = IsHalf;
  static constexpr PairOrder kOrder = PairOrder::Neighbours;

  uint32_t words[4];

  /// Rows of plain weights end where their inputs do, but for what fills 16 bytes up.
  __device__ void read(const LinearArguments &args, const char *output, int32_t chunk, int lane) {
    uint4 v = {};
    if (chunk * kPartInputs + lane * 8 < args.inputs)
      v = loadOnce(output + int64_t{chunk} * 64 + lane * 16);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  }
  __device__ void expand(const LinearArguments &, int, uint32_t, uint32_t (&pairs)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      pairs[i] = words[i];
  }
};

/// What the levels of a group mean: scale · (level - zero), levels counted from 0.
struct GroupScale {
  float scale;
  uint32_t zero;
};

/// Levels: 16 bytes of a lane as packing/pack_linear.h packs them, or as #hone.affine lays them out, one behind the other. Then
/// those of 32 inputs, which a product takes from four lanes, are 16 bytes of 4 bits or 32 of 8, so that a lane reads 4 or 8 bytes
/// at a time; the rest of a sector is asked for at the same time, and comes with it.
///
/// Scales are read when they are used. A sector of them serves sixteen groups, so that few products wait for memory.
template <int Bits, bool IsPacked> struct LevelWeight {
  static constexpr int kParts = Bits == 4 ? 4 : 2, kWords = Bits / 4; // words of a part
  static constexpr bool kHasScales = true, kIsHalf = false;
  static constexpr PairOrder kOrder = Bits == 4 && !IsPacked ? PairOrder::Halves : PairOrder::Neighbours;

  uint32_t words[4];

  /// Rows of packed levels are whole chunks; the others end where their inputs do, which are a multiple of eight.
  __device__ void read(const LinearArguments &args, const char *output, int32_t chunk, int lane) {
    const char *levels = output + int64_t{chunk} * 64 + lane * (IsPacked ? 16 : 4 * kWords);
    if constexpr (IsPacked) {
      uint4 v = loadOnce(levels);
      words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int64_t input = (int64_t{chunk} * kParts + i / kWords) * kPartInputs + 8 * lane;
        const auto *part = reinterpret_cast<const uint32_t *>(levels + i / kWords * 16 * kWords);
        words[i] = input < args.inputs ? part[i % kWords] : 0;
      }
    }
  }

  __device__ static GroupScale scaleOf(const LinearArguments &args, int32_t output, int32_t chunk, int part) {
    int32_t input = (chunk * kParts + part) * kPartInputs, group = input >> args.groupShift;
    if (input >= args.inputs)
      return {0, 0};
    GroupScale result = {loadNumber(args.scales, int64_t{output} * args.groups + group, args.scaleType),
                         1u << (Bits - 1)};
    if (!args.zeros)
      return result;
    bool isByte = IsPacked || Bits == 8;
    result.zero = args.zeros[output * args.zeroStride + (isByte ? group : group / 2)];
    if (!isByte)
      result.zero = result.zero >> (group % 2 * 4) & 15;
    if (!IsPacked && args.isSigned)
      result.zero ^= 1u << (Bits - 1);
    return result;
  }

  /// level - zero is an integer of at most nine bits with its sign, which bf16 holds. Levels with a sign count from 0 once their
  /// highest bit is flipped.
  __device__ void expand(const LinearArguments &args, int part, uint32_t zero, uint32_t (&pairs)[4]) const {
    uint32_t signs = !IsPacked && args.isSigned ? (Bits == 4 ? 0x88888888 : 0x80808080) : 0;
    if constexpr (Bits == 4)
      expandNibbles(words[part] ^ signs, zero, pairs);
    else
      expandBytes(words[2 * part] ^ signs, words[2 * part + 1] ^ signs, zero, pairs);
  }
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H
