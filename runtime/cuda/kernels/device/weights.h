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

/// 16 bytes of weights of bf16 or f16: eight inputs.
template <bool IsHalf> struct PlainWeight {
  static constexpr int kParts = 1, kSpareDepth = 0;
  static constexpr bool kHasScales = false, kIsHalf = IsHalf;

  uint32_t words[4];

  /// Rows of plain weights end where their inputs do, but for what fills 16 bytes up.
  __device__ void read(const LinearArguments &args, const char *output, int64_t, int64_t chunk, int lane) {
    uint4 v = {};
    if (chunk * kPartInputs + lane * 8 < args.inputs)
      v = loadOnce(output + chunk * 64 + lane * 16);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  }
  __device__ void expand(const LinearArguments &, int, uint32_t (&pairs)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      pairs[i] = words[i];
  }
};

/// 16 bytes of levels, and the scales and zero points of the chunk as they were read: converting them here would wait for them.
template <int Bits> struct LevelWeight {
  static constexpr int kParts = Bits == 4 ? 4 : 2, kSpareDepth = 1; // scales take registers too
  static constexpr bool kHasScales = true, kIsHalf = false;

  uint32_t words[4], scales[4], zeros;

  __device__ static int groupsOfChunk(const LinearArguments &args) {
    int inputs = kParts * kPartInputs;
    return args.group > 0 && args.group < inputs ? inputs / args.group : 1;
  }

  __device__ void read(const LinearArguments &args, const char *output, int64_t index, int64_t chunk, int lane) {
    uint4 v = loadOnce(output + chunk * 64 + lane * 16);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
    int64_t first = index * args.groups + (args.group > 0 ? chunk * (kParts * kPartInputs) / args.group : 0);
    readScales(args.scales + first * bytesOf(args.scaleType), groupsOfChunk(args) * bytesOf(args.scaleType));
    if (args.zeros)
      readZeros(args.zeros + first, groupsOfChunk(args));
  }

  __device__ void readScales(const char *address, int bytes) {
    if (bytes == 2) {
      scales[0] = *reinterpret_cast<const uint16_t *>(address);
    } else if (bytes == 4) {
      scales[0] = *reinterpret_cast<const uint32_t *>(address);
    } else if (bytes == 8) {
      uint2 v = *reinterpret_cast<const uint2 *>(address);
      scales[0] = v.x, scales[1] = v.y;
    } else {
      uint4 v = *reinterpret_cast<const uint4 *>(address);
      scales[0] = v.x, scales[1] = v.y, scales[2] = v.z, scales[3] = v.w;
    }
  }
  __device__ void readZeros(const uint8_t *address, int count) {
    if (count == 1)
      zeros = *address;
    else if (count == 2)
      zeros = *reinterpret_cast<const uint16_t *>(address);
    else
      zeros = *reinterpret_cast<const uint32_t *>(address);
  }

  /// Which group of the chunk a part lies in.
  __device__ static int groupOf(const LinearArguments &args, int part) { return part * groupsOfChunk(args) / kParts; }

  __device__ float scale(const LinearArguments &args, int part) const {
    int group = groupOf(args, part);
    if (args.scaleType == HONE_F32)
      return __uint_as_float(group == 0 ? scales[0] : group == 1 ? scales[1] : group == 2 ? scales[2] : scales[3]);
    uint32_t pair = group < 2 ? scales[0] : scales[1];
    return fromF16(static_cast<uint16_t>(group % 2 ? pair >> 16 : pair & 0xffff));
  }
  __device__ uint32_t zero(const LinearArguments &args, int part) const {
    return args.zeros ? zeros >> 8 * groupOf(args, part) & 0xff : 1u << (Bits - 1);
  }

  /// level - zero is an integer of at most nine bits with its sign, which bf16 holds.
  __device__ void expand(const LinearArguments &args, int part, uint32_t (&pairs)[4]) const {
    if constexpr (Bits == 4)
      expand4(words[part], zero(args, part), pairs);
    else
      expand8(words[2 * part], words[2 * part + 1], zero(args, part), pairs);
  }

  /// 0x4300 is 128 in bf16, with steps of 1: a level in its lowest bits makes 128 + level. Levels i and i + 4 are a pair.
  __device__ static void expand4(uint32_t word, uint32_t zero, uint32_t (&pairs)[4]) {
    uint32_t minus = (0xc300u + zero) * 0x10001u; // -(128 + zero), twice
#pragma unroll
    for (int i = 0; i < 4; ++i)
      pairs[i] = multiplyAddBf16((word >> 4 * i & 0x000f000f) | 0x43004300, 0x3f803f80, minus);
  }

  /// Bytes below 2^23 in f32, with steps of 1; what is left when 2^23 + zero is taken away is exact in the upper half.
  __device__ static void expand8(uint32_t low, uint32_t high, uint32_t zero, uint32_t (&pairs)[4]) {
    float minus = __uint_as_float(0x4b000000u + zero);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint32_t word = i < 2 ? low : high;
      float a = __uint_as_float(__byte_perm(word, 0x4b000000, 0x7540 + 2 * (i % 2))) - minus;
      float b = __uint_as_float(__byte_perm(word, 0x4b000000, 0x7540 + 2 * (i % 2) + 1)) - minus;
      pairs[i] = __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x7632);
    }
  }
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_WEIGHTS_H
