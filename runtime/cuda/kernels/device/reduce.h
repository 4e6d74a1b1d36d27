// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: sums and maxima over the threads of a warp or a block. Every thread gets the result.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_REDUCE_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_REDUCE_H

namespace hone::cuda {

__device__ inline float infinity() { return __int_as_float(0x7f800000); }

__device__ inline float warpSum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

/// The maximum, NaN where either is NaN.
__device__ inline float maxNan(float a, float b) { return a > b || a != a ? a : b; }

__device__ inline float warpMaximum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = maxNan(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}

/// What `reduce` does for a warp, for the block; `neutral` stands for warps that are not there.
template <typename Reduce>
__device__ inline float reduceBlock(float value, float neutral, float *shared, Reduce reduce) {
  value = reduce(value);
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = reduce(threadIdx.x % 32 < blockDim.x / 32 ? shared[threadIdx.x % 32] : neutral);
  __syncthreads();
  return value;
}

/// Over the block. `shared` holds an element for each warp. Threads may reuse it after the call.
__device__ inline float blockSum(float value, float *shared) {
  return reduceBlock(value, 0, shared, [](float v) { return warpSum(v); });
}
__device__ inline float blockMaximum(float value, float *shared) {
  return reduceBlock(value, -infinity(), shared, [](float v) { return warpMaximum(v); });
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_REDUCE_H
