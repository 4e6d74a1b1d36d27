// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms: a block for each row. It reads the row again in each pass, which then hits L1, so that rows may
// be of any length.

#include "../device/elements.h"
#include "../device/reduce.h"
#include "row_kernels.h"

namespace hone::cuda {

__device__ inline float elementAt(const RowView &view, int64_t offset, int64_t i) {
  return loadElement(view.data, offset + i * view.inner, view.dtype);
}

/// The sum of f(x) over the row.
template <typename Function>
__device__ inline float sumOf(const RowView &x, int64_t offset, float *shared, Function function) {
  float sum = 0;
  for (int64_t i = threadIdx.x; i < x.count; i += blockDim.x)
    sum += function(elementAt(x, offset, i));
  return blockSum(sum, shared);
}

template <typename Function>
__device__ inline void writeRow(const RowKernelArguments &args, int64_t from, int64_t to, Function function) {
  for (int64_t i = threadIdx.x; i < args.x.count; i += blockDim.x)
    storeElement(args.y.data, to + i * args.y.inner, args.y.dtype, function(elementAt(args.x, from, i), i));
}

/// x where it is a sum: each thread adds the elements that it reads later.
__device__ inline void addRows(const RowKernelArguments &args) {
  if (!args.first.data)
    return;
  int64_t first = args.first.offset(blockIdx.x), second = args.second.offset(blockIdx.x);
  int64_t to = args.x.offset(blockIdx.x);
  for (int64_t i = threadIdx.x; i < args.x.count; i += blockDim.x)
    storeElement(args.x.data, to + i * args.x.inner, args.x.dtype,
                 elementAt(args.first, first, i) + elementAt(args.second, second, i));
}

__device__ inline float weightAt(const RowKernelArguments &args, int64_t i) {
  if (!args.weight.data)
    return 1;
  float weight = elementAt(args.weight, 0, i);
  return args.unitOffset ? 1 + weight : weight;
}

} // namespace hone::cuda

extern "C" __global__ void __launch_bounds__(512)
    rms_norm(const __grid_constant__ hone::cuda::RowKernelArguments args) {
  using namespace hone::cuda;
  __shared__ float shared[16];
  int64_t from = args.x.offset(blockIdx.x), to = args.y.offset(blockIdx.x);
  addRows(args);
  float squares = sumOf(args.x, from, shared, [](float v) { return v * v; });
  float factor = rsqrtf(squares / static_cast<float>(args.x.count) + args.epsilon);
  writeRow(args, from, to, [&](float v, int64_t i) { return v * factor * weightAt(args, i); });
}

extern "C" __global__ void __launch_bounds__(512)
    layer_norm(const __grid_constant__ hone::cuda::RowKernelArguments args) {
  using namespace hone::cuda;
  __shared__ float shared[16];
  int64_t from = args.x.offset(blockIdx.x), to = args.y.offset(blockIdx.x);
  auto count = static_cast<float>(args.x.count);
  addRows(args);
  float mean = sumOf(args.x, from, shared, [](float v) { return v; }) / count;
  float squares = sumOf(args.x, from, shared, [&](float v) { return (v - mean) * (v - mean); });
  float factor = rsqrtf(squares / count + args.epsilon);
  writeRow(args, from, to, [&](float v, int64_t i) {
    float bias = args.bias.data ? elementAt(args.bias, 0, i) : 0;
    return (v - mean) * factor * weightAt(args, i) + bias;
  });
}
