// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: the last step of a linear layer of a few rows. Warps that divided the inputs have left their sums in shared
// memory; the block adds them up in a fixed order and applies bias, activation, factor and residual.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_FINISH_ROWS_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_FINISH_ROWS_H

#include "../linear/few_rows.h"
#include "numbers.h"

namespace hone::cuda {

/// A sum with bias, activation, factor and residual; `row` is that of y.
__device__ inline float finishedNumber(const LinearArguments &args, float sum, int64_t row, int64_t output) {
  if (args.bias.data)
    sum += loadNumber(args.bias.data, output * args.bias.inner, args.bias.dtype);
  float value = activate(sum, args.activation);
  if (args.factor.data)
    value *= loadNumber(args.factor.data, args.factor.offset(row) + output * args.factor.inner, args.factor.dtype);
  if (args.residual.data)
    value +=
        loadNumber(args.residual.data, args.residual.offset(row) + output * args.residual.inner, args.residual.dtype);
  return value;
}

/// Stores it.
__device__ inline void finishNumber(const LinearArguments &args, float sum, int64_t row, int64_t output) {
  storeNumber(args.y.data, args.y.offset(row) + output * args.y.inner, args.y.dtype,
              finishedNumber(args, sum, row, output));
}

/// Four numbers side by side, to a multiple of their bytes.
__device__ inline void storeFour(char *to, int32_t dtype, const float (&numbers)[4]) {
  if (dtype == HONE_F32)
    *reinterpret_cast<float4 *>(to) = {numbers[0], numbers[1], numbers[2], numbers[3]};
  else if (dtype == HONE_F16)
    *reinterpret_cast<uint2 *>(to) = {pairF16(numbers[0], numbers[1]), pairF16(numbers[2], numbers[3])};
  else
    *reinterpret_cast<uint2 *>(to) = {pairBf16(numbers[0], numbers[1]), pairBf16(numbers[2], numbers[3])};
}

/// The same of four outputs side by side, of which those exist that the layer has.
__device__ inline void finishFour(const LinearArguments &args, const float4 &sums, int64_t row, int64_t output) {
  float numbers[4] = {sums.x, sums.y, sums.z, sums.w};
  bool isWhole = args.y.isVector && output + 4 <= args.outputs;
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (isWhole)
      numbers[j] = finishedNumber(args, numbers[j], row, output + j);
    else if (output + j < args.outputs)
      finishNumber(args, numbers[j], row, output + j);
  if (!isWhole)
    return;
  storeFour(args.y.data + (args.y.offset(row) + output) * bytesOf(args.y.dtype), args.y.dtype, numbers);
}

/// Adds up what the warps of a block have, and finishes it where the block has all of the inputs:
/// sums[slices][rows][outputs] of the outputs from `firstOutput` and the rows from `firstRow` on.
template <class Layer> __device__ inline void finishRows(const Layer &args, const float *sums, int32_t rows,
                                                         int32_t outputs, int64_t firstRow, int64_t firstOutput) {
  __syncthreads();
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < rows * outputs; i += blockDim.x) {
    int64_t row = firstRow + i / outputs, output = firstOutput + i % outputs;
    if (row >= args.rows || output >= args.outputs)
      continue;
    float sum = 0;
    for (int32_t slice = 0; slice < args.slices; ++slice)
      sum += sums[slice * rows * outputs + i];
    if (args.parts)
      args.parts[(blockIdx.z * args.rows + row) * args.outputs + output] = sum;
    else
      finishNumber(args, sum, args.outputRow(row), output);
  }
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_FINISH_ROWS_H
