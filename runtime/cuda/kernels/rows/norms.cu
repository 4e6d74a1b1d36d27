// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms: a block for each row. The vectorized ones hold it in registers, and prefetch weight and bias while they wait
// for it; the others read the row again in each pass, which then hits L1, so that rows may be of any length.

#include "../device/overlap.h"
#include "../device/reduce.h"
#include "../device/vectors.h"
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

/// Elements of a row that a thread holds.
struct Quads {
  float values[kQuadsOfThread][4];

  /// Calls `function` with the number and the first element of each four of the thread.
  template <typename Function> __device__ static void forEach(const RowKernelArguments &args, Function function) {
#pragma unroll
    for (int i = 0; i < kQuadsOfThread; ++i) {
      int64_t first = int64_t{4} * (i * blockDim.x + threadIdx.x);
      if (first < args.x.count)
        function(i, first);
    }
  }

  __device__ void load(const RowKernelArguments &args, const RowView &view, int64_t offset) {
    forEach(args, [&](int i, int64_t first) { loadVector<4>(values[i], view, offset, first); });
  }
};

/// The row that a norm is of, in registers, with its weight and bias.
template <bool HasBias> struct HeldRow {
  Quads x, weight, bias;

  __device__ explicit HeldRow(const RowKernelArguments &args) {
    letNextBegin();
    if (!args.isConstant)
      waitForPrevious();
    if (args.weight.data)
      weight.load(args, args.weight, 0);
    if (HasBias && args.bias.data)
      bias.load(args, args.bias, 0);
    waitForPrevious();
    if (args.first.data)
      addRows(args);
    else
      x.load(args, args.x, args.x.offset(blockIdx.x));
  }

  /// The sum of f(x).
  template <typename Function> __device__ float sumOf(const RowKernelArguments &args, float *shared,
                                                      Function function) const {
    float sum = 0;
    Quads::forEach(args, [&](int i, int64_t) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        sum += function(x.values[i][j]);
    });
    return blockSum(sum, shared);
  }

  /// y = (x - mean) · factor · weight + bias.
  __device__ void write(const RowKernelArguments &args, float mean, float factor) const {
    int64_t to = args.y.offset(blockIdx.x);
    Quads::forEach(args, [&](int i, int64_t first) {
      float values[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float w = !args.weight.data ? 1 : args.unitOffset ? 1 + weight.values[i][j] : weight.values[i][j];
        values[j] = (x.values[i][j] - mean) * factor * w + (HasBias && args.bias.data ? bias.values[i][j] : 0);
      }
      storeVector<4>(values, args.y, to, first);
    });
  }

private:
  /// x where it is a sum, which is rounded to its type before its norm is taken.
  __device__ void addRows(const RowKernelArguments &args) {
    int64_t first = args.first.offset(blockIdx.x), second = args.second.offset(blockIdx.x),
            to = args.x.offset(blockIdx.x);
    Quads other;
    x.load(args, args.first, first);
    other.load(args, args.second, second);
    Quads::forEach(args, [&](int i, int64_t at) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        x.values[i][j] = roundedTo(x.values[i][j] + other.values[i][j], args.x.dtype);
      storeVector<4>(x.values[i], args.x, to, at);
    });
  }

  __device__ static float roundedTo(float value, int32_t dtype) {
    if (dtype == HONE_F32)
      return value;
    return dtype == HONE_F16 ? fromF16(toF16(value)) : fromBf16(static_cast<uint16_t>(packBf16x2(value, 0) & 0xffff));
  }
};

} // namespace hone::cuda

extern "C" __global__ void __launch_bounds__(1024)
    rms_norm_4(const __grid_constant__ hone::cuda::RowKernelArguments args) {
  using namespace hone::cuda;
  __shared__ float shared[32];
  HeldRow<false> row(args);
  float squares = row.sumOf(args, shared, [](float v) { return v * v; });
  row.write(args, 0, rsqrtf(squares / static_cast<float>(args.x.count) + args.epsilon));
}

extern "C" __global__ void __launch_bounds__(1024)
    layer_norm_4(const __grid_constant__ hone::cuda::RowKernelArguments args) {
  using namespace hone::cuda;
  __shared__ float shared[32];
  HeldRow<true> row(args);
  auto count = static_cast<float>(args.x.count);
  float mean = row.sumOf(args, shared, [](float v) { return v; }) / count;
  float squares = row.sumOf(args, shared, [&](float v) { return (v - mean) * (v - mean); });
  row.write(args, mean, rsqrtf(squares / count + args.epsilon));
}

extern "C" __global__ void __launch_bounds__(512)
    rms_norm(const __grid_constant__ hone::cuda::RowKernelArguments args) {
  using namespace hone::cuda;
  enterInOrder();
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
  enterInOrder();
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
