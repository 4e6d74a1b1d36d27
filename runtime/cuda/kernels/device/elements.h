// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: conversions, loads and stores of elements of f32, f16 and bf16. In PTX, as no CUDA header is included.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_ELEMENTS_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_ELEMENTS_H

#include "../row_view.h"

namespace hone::cuda {

__device__ inline float fromBf16(uint16_t bits) { return __uint_as_float(static_cast<uint32_t>(bits) << 16); }

__device__ inline float fromF16(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

/// Rounds to nearest even.
__device__ inline uint16_t toF16(float value) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

/// Two elements in a word, `low` in the lower half.
__device__ inline uint32_t packBf16x2(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ inline uint32_t packF16x2(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// The lo terms of two elements: what rounding them to `rounded` left.
__device__ inline uint32_t packRestBf16x2(uint32_t rounded, float low, float high) {
  return packBf16x2(low - __uint_as_float(rounded << 16), high - __uint_as_float(rounded & 0xffff0000));
}

/// Two elements in a word, of f16 or bf16.
template <bool IsHalf> __device__ inline uint32_t packPair(float low, float high) {
  return IsHalf ? packF16x2(low, high) : packBf16x2(low, high);
}

/// a · b + c of bf16x2.
__device__ inline uint32_t fmaBf16x2(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

__device__ inline float loadElement(const char *data, int64_t index, int32_t dtype) {
  if (dtype == HONE_F32)
    return reinterpret_cast<const float *>(data)[index];
  uint16_t bits = reinterpret_cast<const uint16_t *>(data)[index];
  return dtype == HONE_F16 ? fromF16(bits) : fromBf16(bits);
}

__device__ inline void storeElement(char *data, int64_t index, int32_t dtype, float value) {
  if (dtype == HONE_F32)
    reinterpret_cast<float *>(data)[index] = value;
  else
    reinterpret_cast<uint16_t *>(data)[index] =
        dtype == HONE_F16 ? toF16(value) : static_cast<uint16_t>(packBf16x2(value, 0) & 0xffff);
}

/// A streaming load of 16 bytes: it does not allocate in L1, which is kept for data that is read again.
__device__ inline uint4 loadNoAllocate16(const void *address) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address));
  return v;
}

__device__ inline uint2 loadNoAllocate8(const void *address) {
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(address));
  return v;
}

/// Activations of linear layers, with the codes of signatures.def.
__device__ inline float activate(float v, int32_t activation) {
  switch (activation) {
  case 1:
    return v > 0 ? v : v == v ? 0 : v;
  case 2:
    return v / (1 + expf(-v));
  case 3:
    return v * 0.5f * (1 + erff(v * 0.70710678f));
  case 4:
    return 0.5f * v * (1 + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
  default:
    return v;
  }
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_ELEMENTS_H
