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

/// Sums each of `Count` values, a power of two, over the lanes whose numbers are equal below `Least`, with Count + log2
/// shuffles instead of Count · log2. Lane i gets the sum of value i · Count / 32.
template <int Count, int Least = 1, int Distance = 16, int Size>
__device__ inline float scatteredSum(float (&values)[Size]) {
  if constexpr (Count > 1) {
    bool isUpper = threadIdx.x & Distance;
#pragma unroll
    for (int i = 0; i < Count / 2; ++i) {
      float own = isUpper ? values[i + Count / 2] : values[i], other = isUpper ? values[i] : values[i + Count / 2];
      values[i] = own + __shfl_xor_sync(~0u, other, Distance);
    }
    return scatteredSum<Count / 2, Least, Distance / 2>(values);
  } else if constexpr (Distance >= Least) {
    values[0] += __shfl_xor_sync(~0u, values[0], Distance);
    return scatteredSum<1, Least, Distance / 2>(values);
  }
  return values[0];
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
