// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: how GEMV reads each format of weights and makes operand A of mma.sync of it. A chunk is what four
// lanes read of an output; it has parts of 32 inputs, of which a lane holds eight consecutive ones. Parts that have
// one scale are consecutive.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H

#include "../linear/gemv.h"
#include "elements.h"
#include "mma.h"

namespace hone::cuda {

/// Two quantized values q of less than eight bits, one in the lowest bits of each half of `word`, as q - zero in bf16.
/// 0x4300 is 128 in bf16, whose lowest bit counts 1, so q in the lowest bits makes 128 + q. Signed values become
/// unsigned by their highest bit, by the same LOP3.
template <int Bits> __device__ inline uint32_t expandPair(uint32_t word, bool areSigned, uint32_t zero) {
  constexpr uint32_t kCodeMask = ((1u << Bits) - 1) * 0x10001u;
  uint32_t base = 0x43004300 ^ (areSigned ? 0x10001u << (Bits - 1) : 0);
  uint32_t minus = (0xc300u + zero) * 0x10001u; // -(128 + zero), twice
  return fmaBf16x2((word & kCodeMask) ^ base, 0x3f803f80, minus);
}

/// Eight quantized values of at most four bits, of which i and i + 4 are a pair; the first four are in `word` from bit 0
/// on, the others from bit 16 on.
template <int Bits> __device__ inline void expandCodes(uint32_t word, bool areSigned, uint32_t zero,
                                                       uint32_t (&pairs)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    pairs[i] = expandPair<Bits>(word >> Bits * i, areSigned, zero);
}

/// The same of five or six bits: all eight from bit 0 of `codes` on.
template <int Bits> __device__ inline void expandLongCodes(uint64_t codes, bool areSigned, uint32_t zero,
                                                           uint32_t (&pairs)[4]) {
  auto low = static_cast<uint32_t>(codes), high = static_cast<uint32_t>(codes >> 4 * Bits);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    pairs[i] = expandPair<Bits>(__byte_perm(low >> Bits * i, high >> Bits * i, 0x5410), areSigned, zero);
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
  static constexpr int kParts = 1, kChunkInputs = kPartInputs;
  static constexpr int kDepth = 4;             // chunks in flight of a warp with one tile of outputs
  static constexpr int kResidents[2] = {2, 1}; // blocks of an SM at least, with one and two tiles of outputs
  static constexpr bool kHasScales = false, kIsHalf = IsHalf, kMayHaveOutliers = false;
  static constexpr PairOrder kOrder = PairOrder::Neighbours;

  uint32_t words[4];

  /// Where an output's weights are.
  struct Row {
    const char *weight;
    Row() = default;
    __device__ Row(const LinearArguments &args, int64_t output) : weight(args.weight + output * args.weightStride) {}
  };

  /// The first of the eight inputs of a lane in a part of a chunk.
  __device__ static int offsetOf(int, int lane) { return 8 * lane; }

  /// Rows end where their inputs do, but for padding to 16 bytes.
  __device__ void read(const LinearArguments &args, const Row &row, int32_t chunk, int lane) {
    uint4 v = {};
    if (chunk * kPartInputs + lane * 8 < args.inputs)
      v = loadNoAllocate16(row.weight + int64_t{chunk} * 64 + lane * 16);
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

/// Where an output's scales and zero points are; zeros is null where there are none.
struct ScaleRow {
  const char *scales;
  const uint8_t *zeros;
  ScaleRow() = default;
  __device__ ScaleRow(const LinearArguments &args, int64_t output)
      : scales(args.scales + output * args.groups * bytesOf(args.scaleType)),
        zeros(args.zeros ? args.zeros + output * args.zeroStride : nullptr) {}
};

/// The scale and the zero point of a group as they are stored, so that their loads are prefetched like the weights: a
/// sector of scales serves sixteen groups, but the warps of a block read it at the same time, and would all wait.
template <int Bits> struct StoredScale {
  static constexpr bool kMayStraddle = 8 % Bits != 0; // a zero point may begin in one byte and end in the next
  uint32_t scale, zeros[kMayStraddle ? 2 : 1];

  /// Of the group of `input`, or of the last one.
  __device__ void read(const LinearArguments &args, const ScaleRow &row, int32_t input) {
    int32_t group = groupOf(args, input);
    scale = args.scaleType == HONE_F32 ? reinterpret_cast<const uint32_t *>(row.scales)[group]
                                       : reinterpret_cast<const uint16_t *>(row.scales)[group];
    if (!args.zeros)
      return;
    const uint8_t *first = row.zeros + group * Bits / 8;
    zeros[0] = first[0];
    if constexpr (kMayStraddle)
      zeros[1] = group * Bits % 8 > 8 - Bits ? first[1] : 0;
  }

  /// Signed values become unsigned when their highest bit is flipped.
  __device__ GroupScale get(const LinearArguments &args, int32_t input) const {
    GroupScale result = {args.scaleType == HONE_F32   ? __uint_as_float(scale)
                         : args.scaleType == HONE_F16 ? fromF16(static_cast<uint16_t>(scale))
                                                      : __uint_as_float(scale << 16),
                         1u << (Bits - 1)};
    if (!args.zeros)
      return result;
    uint32_t bytes = zeros[0];
    if constexpr (kMayStraddle)
      bytes |= zeros[1] << 8;
    result.zero = bytes >> groupOf(args, input) * Bits % 8 & ((1u << Bits) - 1);
    if (args.isSigned)
      result.zero ^= 1u << (Bits - 1);
    return result;
  }

private:
  __device__ static int32_t groupOf(const LinearArguments &args, int32_t input) {
    auto last = static_cast<int32_t>(args.inputs - 1);
    return (input < last ? input : last) >> args.groupShift;
  }
};

/// Quantized values as #hone.affine packs them, in rows that begin at multiples of 4 bytes.
///
/// Narrow: 32 inputs, which four lanes contribute to a product, are `Bits` words; the eight of a lane are 2 words of 8
/// bits, 1 of 4 bits, half a word of 2 bits, and as many bytes of 2 words as they have bits where that is 3, 5 or 6. The
/// rest of a sector is loaded by the neighbouring lanes and the next parts. A part has one scale.
///
/// Wide: a lane has consecutive words of one output, 4 of 8 and 4 bits and 2 of 2 bits in one load, otherwise as many as
/// they have bits, and four lanes a chunk of one scale: fewer loads and scales, for groups of at least a chunk (isWide).
template <int Bits, bool IsWide = false> struct AffineWeight {
  static constexpr int kWords = Bits == 8 || 8 % Bits != 0 ? 2 : 1; // of a narrow part
  static constexpr int kParts = IsWide ? (Bits == 8 ? 2 : 4) : 4 / kWords;
  static constexpr int kChunkInputs = kParts * kPartInputs;
  static constexpr int kScales = IsWide ? 1 : kParts;
  static constexpr bool kAreLong =
      IsWide && (Bits == 5 || Bits == 6); // more than four words, so that fewer are in flight
  static constexpr int kDepth = IsWide && !kAreLong ? 3 : 2, kResidents[2] = {1, 1};
  static constexpr bool kHasScales = true, kIsHalf = false, kMayHaveOutliers = true;
  static constexpr PairOrder kOrder = Bits == 8 ? PairOrder::Neighbours : PairOrder::Halves;

  uint32_t words[kAreLong ? 6 : 4];
  StoredScale<Bits> scales[kScales];

  struct Row : ScaleRow {
    const char *weight;
    Row() = default;
    __device__ Row(const LinearArguments &args, int64_t output)
        : ScaleRow(args, output), weight(args.weight + output * args.weightStride) {}
  };

  __device__ static int offsetOf(int part, int lane) {
    return IsWide ? 8 * (kParts * lane + part) : kPartInputs * part + 8 * lane;
  }

  /// Rows end where their inputs do; inputs are a multiple of those of a lane's load.
  __device__ void read(const LinearArguments &args, const Row &row, int32_t chunk, int lane) {
    if constexpr (IsWide) {
      constexpr int kLoaded = Bits == 8 ? 4 : Bits;
      const char *from = row.weight + int64_t{chunk} * 16 * kLoaded + lane * 4 * kLoaded;
      bool exists = chunk * kChunkInputs + offsetOf(0, lane) < args.inputs;
      if constexpr (Bits == 3 || Bits == 5) {
#pragma unroll
        for (int i = 0; i < Bits; ++i)
          words[i] = exists ? reinterpret_cast<const uint32_t *>(from)[i] : 0;
      } else if constexpr (Bits == 2 || Bits == 6) {
#pragma unroll
        for (int i = 0; i < Bits; i += 2) {
          uint2 two = {};
          if (exists)
            two = loadNoAllocate8(from + 4 * i);
          words[i] = two.x, words[i + 1] = two.y;
        }
      } else {
        uint4 v = {};
        if (exists)
          v = loadNoAllocate16(from);
        words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
      }
    } else {
      int first = 8 * Bits * lane / 32, last = (8 * Bits * (lane + 1) - 1) / 32;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int64_t part = int64_t{chunk} * kParts + i / kWords;
        const auto *codes = reinterpret_cast<const uint32_t *>(row.weight + part * 4 * Bits);
        words[i] = part * kPartInputs + 8 * lane < args.inputs ? codes[i % kWords == 0 ? first : last] : 0;
      }
    }
  }

  __device__ void readScales(const LinearArguments &args, const Row &row, int32_t chunk) {
#pragma unroll
    for (int i = 0; i < kScales; ++i)
      scales[i].read(args, row, chunk * kChunkInputs + i * kPartInputs);
  }

  /// Of the parts that have scale `i`.
  __device__ GroupScale scale(const LinearArguments &args, int32_t chunk, int i) const {
    return scales[i].get(args, chunk * kChunkInputs + i * kPartInputs);
  }

  /// q - zero is a signed integer of at most nine bits, which bf16 represents.
  __device__ void expand(const LinearArguments &args, int part, int lane, uint32_t zero, uint32_t (&pairs)[4]) const {
    if constexpr (Bits == 8) {
      uint32_t signs = args.isSigned ? 0x80808080 : 0;
      expandBytes(words[2 * part] ^ signs, words[2 * part + 1] ^ signs, zero, pairs);
    } else if constexpr (Bits > 4) {
      int bit = 8 * Bits * (IsWide ? part : lane), word = IsWide ? bit / 32 : 2 * part;
      uint64_t both = uint64_t{words[word + 1]} << 32 | words[word];
      expandLongCodes<Bits>(both >> bit % 32, args.isSigned, zero, pairs);
    } else {
      expandCodes<Bits>(eightCodes(part, lane), args.isSigned, zero, pairs);
    }
  }

private:
  /// Of at most four bits: values 0 to 3 of a lane from bit 0 on, and 4 to 7 from bit 16 on.
  __device__ uint32_t eightCodes(int part, int lane) const {
    if constexpr (Bits == 4)
      return words[part];
    else if constexpr (Bits == 3 && IsWide)
      return spreadCodes(__funnelshift_r(words[24 * part / 32], words[24 * part / 32 + 1], 24 * part % 32));
    else if constexpr (Bits == 3)
      return spreadCodes(__funnelshift_r(words[2 * part], words[2 * part + 1], 24 * lane % 32));
    else if constexpr (IsWide)
      return spreadCodes(words[part / 2] >> part % 2 * 16);
    else
      return spreadCodes(words[part] >> lane % 2 * 16);
  }
  __device__ static uint32_t spreadCodes(uint32_t word) {
    constexpr uint32_t kFour = (1u << 4 * Bits % 32) - 1;
    return (word & kFour) | (word << (16 - 4 * Bits) & kFour << 16);
  }
};

template <int Bits> using WideAffineWeight = AffineWeight<Bits, true>;

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H
