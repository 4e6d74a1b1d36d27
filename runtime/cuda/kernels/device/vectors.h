// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: vectorized loads and stores of consecutive elements of a row, four at a time where rows allow it.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_VECTORS_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_VECTORS_H

#include "elements.h"

namespace hone::cuda {

__device__ inline void loadFour(float *values, const char *data, int64_t index, int32_t dtype) {
  if (dtype == HONE_F32) {
    float4 v = *reinterpret_cast<const float4 *>(data + 4 * index);
    values[0] = v.x, values[1] = v.y, values[2] = v.z, values[3] = v.w;
    return;
  }
  uint2 v = *reinterpret_cast<const uint2 *>(data + 2 * index);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    auto bits = static_cast<uint16_t>((i < 2 ? v.x : v.y) >> i % 2 * 16);
    values[i] = dtype == HONE_F16 ? fromF16(bits) : fromBf16(bits);
  }
}

__device__ inline void storeFour(char *data, int64_t index, int32_t dtype, const float *values) {
  if (dtype == HONE_F32) {
    *reinterpret_cast<float4 *>(data + 4 * index) = {values[0], values[1], values[2], values[3]};
    return;
  }
  bool isHalf = dtype == HONE_F16;
  uint2 v = {isHalf ? packF16x2(values[0], values[1]) : packBf16x2(values[0], values[1]),
             isHalf ? packF16x2(values[2], values[3]) : packBf16x2(values[2], values[3])};
  *reinterpret_cast<uint2 *>(data + 2 * index) = v;
}

/// Elements first … first + Count - 1 of the row of `view` at `offset`. With Count a multiple of four, `first` is one
/// too, and the row is a vector (RowView::isVector).
template <int Count> __device__ inline void loadVector(float *values, const RowView &view, int64_t offset,
                                                       int64_t first) {
  if constexpr (Count % 4 == 0) {
#pragma unroll
    for (int i = 0; i < Count; i += 4)
      loadFour(values + i, view.data, offset + first + i, view.dtype);
  } else {
#pragma unroll
    for (int i = 0; i < Count; ++i)
      values[i] = loadElement(view.data, offset + (first + i) * view.inner, view.dtype);
  }
}

template <int Count>
__device__ inline void storeVector(const float *values, const RowView &view, int64_t offset, int64_t first) {
  if constexpr (Count % 4 == 0) {
#pragma unroll
    for (int i = 0; i < Count; i += 4)
      storeFour(view.data, offset + first + i, view.dtype, values + i);
  } else {
#pragma unroll
    for (int i = 0; i < Count; ++i)
      storeElement(view.data, offset + (first + i) * view.inner, view.dtype, values[i]);
  }
}

} // namespace hone::cuda

/// Kernels NAME_1 and NAME_4, which call BODY<1> or BODY<4>: a thread has so many elements, or pairs, of a row.
#define HONE_VECTORIZED_KERNELS(NAME, THREADS, ARGUMENTS, BODY)                                                        \
  extern "C" __global__ void __launch_bounds__(THREADS) NAME##_1(const __grid_constant__ ARGUMENTS args) {             \
    BODY<1>(args);                                                                                                     \
  }                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(THREADS) NAME##_4(const __grid_constant__ ARGUMENTS args) {             \
    BODY<4>(args);                                                                                                     \
  }

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_VECTORS_H
