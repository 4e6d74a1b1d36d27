// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: how GEMV reads each format of weights and makes operand A of mma.sync of it. A chunk is what four
// lanes read of an output; it has parts of 32 inputs, of which a lane holds eight consecutive ones.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H

#include "../linear/gemv.h"
#include "elements.h"
#include "mma.h"

namespace hone::cuda {

/// Eight quantized values q of at most four bits, as pairs of q - zero in bf16. 0x4300 is 128 in bf16, whose lowest
/// bit counts 1, so q in the lowest bits makes 128 + q. Values i and i + 4 are a pair; the first four are in `word`
/// from bit 0 on, the others from bit 16 on.
template <int Bits> __device__ inline void expandCodes(uint32_t word, uint32_t zero, uint32_t (&pairs)[4]) {
  constexpr uint32_t kCodeMask = ((1u << Bits) - 1) * 0x10001u;
  uint32_t minus = (0xc300u + zero) * 0x10001u; // -(128 + zero), twice
#pragma unroll
  for (int i = 0; i < 4; ++i)
    pairs[i] = fmaBf16x2((word >> Bits * i & kCodeMask) | 0x43004300, 0x3f803f80, minus);
}

/// Bytes in the lowest bits of 2^23 in f32, whose lowest bit counts 1. The difference to 2^23 + zero is exact in the
/// upper half of f32.
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

/// Which of the eight inputs of a lane form a pair: 2i and 2i + 1, or i and i + 4.
enum class PairOrder { Neighbours, Halves };

/// Dense weights of bf16 or f16: 16 bytes are eight inputs.
template <bool IsHalf> struct DenseWeight {
  static constexpr int kParts = 1;
  static constexpr int kDepth = 4; // chunks in flight of a warp with one tile of outputs
  static constexpr bool kHasScales = false, kIsHalf = IsHalf, kMayHaveOutliers = false;
  static constexpr PairOrder kOrder = PairOrder::Neighbours;

  uint32_t words[4];

  /// Rows end where their inputs do, but for padding to 16 bytes.
  __device__ void read(const LinearArguments &args, int32_t output, int32_t chunk, int lane) {
    uint4 v = {};
    if (chunk * kPartInputs + lane * 8 < args.inputs)
      v = loadNoAllocate16(args.weight + output * args.weightStride + int64_t{chunk} * 64 + lane * 16);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  }
  __device__ void expand(const LinearArguments &, int, int, uint32_t, uint32_t (&pairs)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      pairs[i] = words[i];
  }
};

/// Of a quantization group: w = scale · (q - zero), with unsigned q.
struct GroupScale {
  float scale;
  uint32_t zero;
};

/// Quantized values as #hone.affine packs them, in rows that begin at multiples of 4 bytes. 32 inputs, which four
/// lanes contribute to a product, are `Bits` words; the eight of a lane are 2 words of 8 bits, 1 of 4 bits, half a
/// word of 2 bits, and three bytes of 2 words of 3 bits. The rest of a sector is loaded by the neighbouring lanes and
/// the next parts.
///
/// Scales are loaded when they are used: a sector of them serves sixteen groups, so few loads miss.
template <int Bits> struct AffineWeight {
  static constexpr int kWords = Bits == 8 || Bits == 3 ? 2 : 1, kParts = 4 / kWords; // words of a part
  static constexpr int kDepth = Bits == 3 ? 6 : Bits == 2 ? 4 : 3;
  static constexpr bool kHasScales = true, kIsHalf = false, kMayHaveOutliers = true;
  static constexpr PairOrder kOrder = Bits == 8 ? PairOrder::Neighbours : PairOrder::Halves;

  uint32_t words[4];

  /// Rows end where their inputs do; inputs are a multiple of eight.
  __device__ void read(const LinearArguments &args, int32_t output, int32_t chunk, int lane) {
    const char *row = args.weight + output * args.weightStride;
    int first = 8 * Bits * lane / 32, last = (8 * Bits * (lane + 1) - 1) / 32;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int64_t part = int64_t{chunk} * kParts + i / kWords;
      const auto *codes = reinterpret_cast<const uint32_t *>(row + part * 4 * Bits);
      words[i] = part * kPartInputs + 8 * lane < args.inputs ? codes[i % kWords == 0 ? first : last] : 0;
    }
  }

  __device__ static GroupScale scaleOf(const LinearArguments &args, int32_t output, int32_t chunk, int part) {
    return scaleAt(args, output, (chunk * kParts + part) * kPartInputs);
  }

  __device__ static GroupScale scaleAt(const LinearArguments &args, int32_t output, int32_t input) {
    int32_t group = input >> args.groupShift;
    if (input >= args.inputs)
      return {0, 0};
    GroupScale result = {loadElement(args.scales, int64_t{output} * args.groups + group, args.scaleType),
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

  /// q - zero is a signed integer of at most nine bits, which bf16 represents. Signed values become unsigned when
  /// their highest bit is flipped.
  __device__ void expand(const LinearArguments &args, int part, int lane, uint32_t zero, uint32_t (&pairs)[4]) const {
    if constexpr (Bits == 8) {
      uint32_t signs = args.isSigned ? 0x80808080 : 0;
      expandBytes(words[2 * part] ^ signs, words[2 * part + 1] ^ signs, zero, pairs);
    } else {
      constexpr uint32_t kFour = 1u | 1u << Bits | 1u << 2 * Bits | 1u << 3 * Bits; // the lowest bits of four values
      uint32_t signs = args.isSigned ? kFour * 0x10001u << (Bits - 1) : 0;
      expandCodes<Bits>(eightCodes(part, lane) ^ signs, zero, pairs);
    }
  }

private:
  /// Values 0 to 3 of a lane from bit 0 on, and 4 to 7 from bit 16 on.
  __device__ uint32_t eightCodes(int part, int lane) const {
    if constexpr (Bits == 4)
      return words[part];
    else if constexpr (Bits == 3)
      return spreadCodes(__funnelshift_r(words[2 * part], words[2 * part + 1], 24 * lane % 32));
    else
      return spreadCodes(words[part] >> lane % 2 * 16);
  }
  __device__ static uint32_t spreadCodes(uint32_t word) {
    constexpr uint32_t kFour = (1u << 4 * Bits % 32) - 1;
    return (word & kFour) | (word << (16 - 4 * Bits) & kFour << 16);
  }
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H
