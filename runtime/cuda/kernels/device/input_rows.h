// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: eight inputs of a row of x as operand B of mma.sync.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_INPUT_ROWS_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_INPUT_ROWS_H

#include "elements.h"
#include "weights.h"

namespace hone::cuda {

/// Inputs as loaded: f32 where they are split into hi and lo terms of bf16, else pairs of 16 bits.
template <bool Split> struct RawInputs {
  uint32_t words[Split ? 8 : 4];
};

/// Inputs k … k + 7 of `row`, which is aligned to 16 bytes and has a multiple of eight; 0 past the end, and where
/// `row` is null.
template <bool Split> __device__ inline void readInputs(RawInputs<Split> &raw, const char *row, int32_t k,
                                                        int32_t count) {
  uint4 v = {};
  [[maybe_unused]] uint4 w = {};
  if (row && k < count) {
    const auto *address = reinterpret_cast<const uint4 *>(row + k * (Split ? 4 : 2));
    v = address[0];
    if constexpr (Split)
      w = address[1];
  }
  if constexpr (Split)
    raw = {{v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w}};
  else
    raw = {{v.x, v.y, v.z, v.w}};
}

/// Pairs of 16 bits: the hi terms, and with Split the lo terms, so that hi + lo has 16 bits of mantissa.
template <bool Split> struct Inputs {
  uint32_t high[4], low[Split ? 4 : 1];

  Inputs() = default;
  __device__ Inputs(const RawInputs<Split> &raw, PairOrder order) {
    bool areHalves = order == PairOrder::Halves;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (Split) {
        float a = __uint_as_float(raw.words[areHalves ? i : 2 * i]);
        float b = __uint_as_float(raw.words[areHalves ? i + 4 : 2 * i + 1]);
        high[i] = packBf16x2(a, b);
        low[i] = packRestBf16x2(high[i], a, b);
      } else {
        high[i] =
            areHalves ? __byte_perm(raw.words[i / 2], raw.words[i / 2 + 2], i % 2 ? 0x7632 : 0x5410) : raw.words[i];
      }
    }
  }
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_INPUT_ROWS_H
