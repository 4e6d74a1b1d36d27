// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: the epilogue of linear layers (bias, activation, factor, residual), and the reduction of K-slices
// within a block, in a fixed order.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_EPILOGUE_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_EPILOGUE_H

#include "../linear/gemv.h"
#include "elements.h"

namespace hone::cuda {

/// What the epilogue adds to a sum and multiplies it by.
struct EpilogueTerms {
  float bias, factor, residual;
};

/// The terms of an output; `row` is that of y.
__device__ inline EpilogueTerms loadTerms(const LinearArguments &args, int64_t row, int64_t output) {
  EpilogueTerms terms = {};
  if (args.bias.data)
    terms.bias = loadElement(args.bias.data, output * args.bias.inner, args.bias.dtype);
  if (args.factor.data)
    terms.factor =
        loadElement(args.factor.data, args.factor.offset(row) + output * args.factor.inner, args.factor.dtype);
  if (args.residual.data)
    terms.residual =
        loadElement(args.residual.data, args.residual.offset(row) + output * args.residual.inner, args.residual.dtype);
  return terms;
}

__device__ inline float applyTerms(const LinearArguments &args, float sum, const EpilogueTerms &terms) {
  if (args.bias.data)
    sum += terms.bias;
  float value = activate(sum, args.activation);
  if (args.factor.data)
    value *= terms.factor;
  if (args.residual.data)
    value += terms.residual;
  return value;
}

/// The epilogue applied to a sum; `row` is that of y.
__device__ inline float applyEpilogue(const LinearArguments &args, float sum, int64_t row, int64_t output) {
  return applyTerms(args, sum, loadTerms(args, row, output));
}

/// Applies the epilogue and stores the result.
__device__ inline void storeOutput(const LinearArguments &args, float sum, int64_t row, int64_t output) {
  storeElement(args.y.data, args.y.offset(row) + output * args.y.inner, args.y.dtype,
               applyEpilogue(args, sum, row, output));
}

/// Four consecutive elements, to an address aligned to their size.
__device__ inline void storeFour(char *to, int32_t dtype, const float (&values)[4]) {
  if (dtype == HONE_F32)
    *reinterpret_cast<float4 *>(to) = {values[0], values[1], values[2], values[3]};
  else if (dtype == HONE_F16)
    *reinterpret_cast<uint2 *>(to) = {packF16x2(values[0], values[1]), packF16x2(values[2], values[3])};
  else
    *reinterpret_cast<uint2 *>(to) = {packBf16x2(values[0], values[1]), packBf16x2(values[2], values[3])};
}

/// storeOutput of four consecutive outputs, as far as the layer has them.
__device__ inline void storeFourOutputs(const LinearArguments &args, const float4 &sums, int64_t row, int64_t output) {
  float values[4] = {sums.x, sums.y, sums.z, sums.w};
  bool isWhole = args.y.isVector && output + 4 <= args.outputs;
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (isWhole)
      values[j] = applyEpilogue(args, values[j], row, output + j);
    else if (output + j < args.outputs)
      storeOutput(args, values[j], row, output + j);
  if (!isWhole)
    return;
  storeFour(args.y.data + (args.y.offset(row) + output) * bytesOf(args.y.dtype), args.y.dtype, values);
}

/// Adds the K-slices of a block, sums[slices][rows][outputs] of the outputs from `firstOutput` and the rows from
/// `firstRow` on, and stores outputs, or partial sums where the block has a part of the inputs (split-K). The terms of
/// the epilogue are prefetched.
template <class Layer> __device__ inline void reduceAndStore(const Layer &args, const float *sums, int32_t rows,
                                                             int32_t outputs, int64_t firstRow, int64_t firstOutput) {
  EpilogueTerms terms = {};
  auto prefetch = [&](int32_t i) {
    int64_t row = firstRow + i / outputs, output = firstOutput + i % outputs;
    if (i < rows * outputs && row < args.rows && output < args.outputs && !args.partialSums)
      terms = loadTerms(args, args.outputRow(row), output);
  };
  prefetch(threadIdx.x);
  __syncthreads();
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < rows * outputs; i += blockDim.x) {
    int64_t row = firstRow + i / outputs, output = firstOutput + i % outputs;
    if (row >= args.rows)
      return;
    EpilogueTerms own = terms;
    prefetch(i + blockDim.x);
    if (output >= args.outputs)
      continue;
    float sum = 0;
    for (int32_t slice = 0; slice < args.slices; ++slice)
      sum += sums[slice * rows * outputs + i];
    if (args.partialSums)
      args.partialSums[(blockIdx.z * args.rows + row) * args.outputs + output] = sum;
    else
      storeElement(args.y.data, args.y.offset(args.outputRow(row)) + output * args.y.inner, args.y.dtype,
                   applyTerms(args, sum, own));
  }
}

/// The same of a gate and an up layer, sums[slices][rows][2 · outputs], of which the first half are the gate's.
__device__ inline void reduceGated(const LinearLayers &args, const float *sums, int32_t rows, int32_t outputs,
                                   int64_t firstRow, int64_t firstOutput) {
  const LinearArguments &gate = args.layers[0], &up = args.layers[1];
  __syncthreads();
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < rows * outputs; i += blockDim.x) {
    int64_t row = firstRow + i / outputs, output = firstOutput + i % outputs;
    if (row >= gate.rows)
      return;
    if (output >= gate.outputs)
      continue;
    const float *own = sums + i / outputs * 2 * outputs + i % outputs;
    float gateSum = 0, upSum = 0;
    for (int32_t slice = 0; slice < gate.slices; ++slice, own += rows * 2 * outputs) {
      gateSum += own[0];
      upSum += own[outputs];
    }
    float value = applyEpilogue(up, upSum, row, output) * applyEpilogue(gate, gateSum, row, output);
    storeElement(gate.y.data, gate.y.offset(row) + output * gate.y.inner, gate.y.dtype, value);
  }
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_EPILOGUE_H
