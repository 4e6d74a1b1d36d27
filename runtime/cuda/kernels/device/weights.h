// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: how each format of weights is read, and becomes operand A of the matrix units.
// A chunk is what four lanes read of an output; it has parts of 32 inputs, of which a lane holds eight that follow each other.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H

#include "../linear/few_rows.h"
#include "matrix_units.h"
#include "numbers.h"

namespace hone::cuda {

/// Eight levels of at most four bits, as pairs of level - zero in bf16. 0x4300 is 128 there, with steps of 1: a level in its lowest bits
/// makes 128 + level. Levels i and i + 4 are a pair; the first four are in `word` from bit 0 on, the others from bit 16 on.
template <int Bits> __device__ inline void expandLevels(uint32_t word, uint32_t zero, uint32_t (&pairs)[4]) {
  constexpr uint32_t kLevels = ((1u << Bits) - 1) * 0x10001u;
  uint32_t minus = (0xc300u + zero) * 0x10001u; // -(128 + zero), twice
#pragma unroll
  for (int i = 0; i < 4; ++i)
    pairs[i] = multiplyAddBf16((word >> Bits * i & kLevels) | 0x43004300, 0x3f803f80, minus);
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
  static constexpr int kDepth = 4; // chunks that a warp keeps on their way with one tile of outputs
  static constexpr bool kHasScales = false, kIsHalf = IsHalf, kMayHaveOutliers = false;
  static constexpr PairOrder kOrder = PairOrder::Neighbours;

  uint32_t words[4];

  /// Rows of plain weights end where their inputs do, but for what fills 16 bytes up.
  __device__ void read(const LinearArguments &args, int32_t output, int32_t chunk, int lane) {
    uint4 v = {};
    if (chunk * kPartInputs + lane * 8 < args.inputs)
      v = loadOnce(args.weight + output * args.weightStride + int64_t{chunk} * 64 + lane * 16);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  }
  __device__ void expand(const LinearArguments &, int, int, uint32_t, uint32_t (&pairs)[4]) const {
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

/// Levels as #hone.affine lays them out, one behind the other, in rows that begin at multiples of 4 bytes. Those of 32 inputs, which a
/// product takes from four lanes, are `Bits` words; the eight of a lane are 2 words of 8 bits, 1 of 4, half a word of 2, and three of
/// the bytes of 2 words of 3. The rest of a sector is asked for at the same time, and comes with it.
///
/// Scales are read when they are used. A sector of them serves sixteen groups, so that few products wait for memory.
template <int Bits> struct LevelWeight {
  static constexpr int kWords = Bits == 8 || Bits == 3 ? 2 : 1, kParts = 4 / kWords; // words of a part
  static constexpr int kDepth = Bits == 3 ? 6 : Bits == 2 ? 4 : 3;
  static constexpr bool kHasScales = true, kIsHalf = false, kMayHaveOutliers = true;
  static constexpr PairOrder kOrder = Bits == 8 ? PairOrder::Neighbours : PairOrder::Halves;

  uint32_t words[4];

  /// Rows end where their inputs do, which are a multiple of eight.
  __device__ void read(const LinearArguments &args, int32_t output, int32_t chunk, int lane) {
    const char *row = args.weight + output * args.weightStride;
    int first = 8 * Bits * lane / 32, last = (8 * Bits * (lane + 1) - 1) / 32;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int64_t part = int64_t{chunk} * kParts + i / kWords;
      const auto *levels = reinterpret_cast<const uint32_t *>(row + part * 4 * Bits);
      words[i] = part * kPartInputs + 8 * lane < args.inputs ? levels[i % kWords == 0 ? first : last] : 0;
    }
  }

  __device__ static GroupScale scaleOf(const LinearArguments &args, int32_t output, int32_t chunk, int part) {
    return scaleAt(args, output, (chunk * kParts + part) * kPartInputs);
  }

  __device__ static GroupScale scaleAt(const LinearArguments &args, int32_t output, int32_t input) {
    int32_t group = input >> args.groupShift;
    if (input >= args.inputs)
      return {0, 0};
    GroupScale result = {loadNumber(args.scales, int64_t{output} * args.groups + group, args.scaleType),
                         1u << (Bits - 1)};
    if (!args.zeros)
      return result;
    const uint8_t *zeros = args.zeros + output * args.zeroStride + group * Bits / 8;
    int shift = group * Bits % 8;
    result.zero = zeros[0] >> shift;
    if (Bits == 3 && shift > 5)
      result.zero |= uint32_t{zeros[1]} << (8 - shift);
    result.zero &= (1u << Bits) - 1;
    if (args.isSigned)
      result.zero ^= 1u << (Bits - 1);
    return result;
  }

  /// level - zero is an integer of at most nine bits with its sign, which bf16 holds. Levels with a sign count from 0 once their
  /// highest bit is flipped.
  __device__ void expand(const LinearArguments &args, int part, int lane, uint32_t zero, uint32_t (&pairs)[4]) const {
    if constexpr (Bits == 8) {
      uint32_t signs = args.isSigned ? 0x80808080 : 0;
      expandBytes(words[2 * part] ^ signs, words[2 * part + 1] ^ signs, zero, pairs);
    } else {
      constexpr uint32_t kFour = 1u | 1u << Bits | 1u << 2 * Bits | 1u << 3 * Bits; // the lowest bits of four levels
      uint32_t signs = args.isSigned ? kFour * 0x10001u << (Bits - 1) : 0;
      expandLevels<Bits>(eightLevels(part, lane) ^ signs, zero, pairs);
    }
  }

private:
  /// Levels 0 to 3 of a lane from bit 0 on, and 4 to 7 from bit 16 on.
  __device__ uint32_t eightLevels(int part, int lane) const {
    if constexpr (Bits == 4)
      return words[part];
    else if constexpr (Bits == 3)
      return spreadLevels(__funnelshift_r(words[2 * part], words[2 * part + 1], 24 * lane % 32));
    else
      return spreadLevels(words[part] >> lane % 2 * 16);
  }
  __device__ static uint32_t spreadLevels(uint32_t word) {
    constexpr uint32_t kFour = (1u << 4 * Bits % 32) - 1;
    return (word & kFour) | (word << (16 - 4 * Bits) & kFour << 16);
  }
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H
