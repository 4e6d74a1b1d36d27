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

__device__ inline float blockMaximum(float value, float *shared) {
  value = warpMaximum(value);
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = warpMaximum(threadIdx.x % 32 < blockDim.x / 32 ? shared[threadIdx.x % 32] : -infinity());
  __syncthreads();
  return value;
}

/// `shared` holds an element for each warp. Threads may reuse it after the call.
__device__ inline float blockSum(float value, float *shared) {
  value = warpSum(value);
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = warpSum(threadIdx.x % 32 < blockDim.x / 32 ? shared[threadIdx.x % 32] : 0);
  __syncthreads();
  return value;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_REDUCE_H
