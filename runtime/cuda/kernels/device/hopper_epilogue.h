// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code for sm_90a: stores the wgmma accumulators of a warpgroup, 64 rows by 256 columns, to y. 64 columns at a
// time are staged in shared memory, so that consecutive threads store consecutive outputs.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_HOPPER_EPILOGUE_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_HOPPER_EPILOGUE_H

#include "../linear/hopper_epilogue.h"
#include "epilogue.h"

namespace hone::cuda {

/// Writes columns 64 · part … of the accumulators, registers as in wgmma.h, to the staging tile. With IsTransposed
/// rows of the product are outputs, else rows of y.
template <bool IsTransposed> __device__ inline void stageAccumulators(const float (&sums)[128], int part, float *to) {
  int line = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4, first = threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < kStagingSide / 2; i += 2) {
    float2 pair = {sums[part * kStagingSide / 2 + i], sums[part * kStagingSide / 2 + i + 1]};
    int below = i / 2 % 2 * 8, column = i / 4 * 8;
    // The swizzle repeats every eight rows, so that the offset of `column` rows is a constant.
    if constexpr (IsTransposed) {
      float *at = to + column * kStagingSide;
      at[stagingIndex(first, line + below)] = pair.x, at[stagingIndex(first + 1, line + below)] = pair.y;
    } else {
      *reinterpret_cast<float2 *>(to + stagingIndex(line + below, column + first)) = pair;
    }
  }
}

/// Whether the epilogue is a bias at most and rows of y are contiguous vectors with one stride.
__device__ inline bool isBiasOnly(const LinearArguments &layer) {
  return !layer.factor.data && !layer.residual.data && layer.activation == 0 && layer.y.isVector &&
         layer.y.sizes[0] == 1;
}

/// Stores a staging tile of such a layer whose outputs all exist.
__device__ inline void storeBiasOnlyTile(const LinearArguments &layer, const float *tile, int32_t row, int32_t output) {
  constexpr int kFours = kStagingSide / 4;
#pragma unroll 1
  for (int i = threadIdx.x % 128; i < kStagingSide * kFours; i += 128) {
    int64_t own = row + i / kFours, first = output + i % kFours * 4;
    if (own >= layer.rows)
      break;
    float4 sums = *reinterpret_cast<const float4 *>(tile + stagingIndex(i / kFours, i % kFours * 4));
    float values[4] = {sums.x, sums.y, sums.z, sums.w};
    if (layer.bias.data)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        values[j] += loadElement(layer.bias.data, (first + j) * layer.bias.inner, layer.bias.dtype);
    storeFour(layer.y.data + (own * layer.y.strides[2] + first) * bytesOf(layer.y.dtype), layer.y.dtype, values);
  }
}

/// Stores a staging tile of any layer.
__device__ inline void storeTile(const LinearArguments &layer, const float *tile, int32_t row, int32_t output) {
  constexpr int kFours = kStagingSide / 4;
#pragma unroll 1
  for (int i = threadIdx.x % 128; i < kStagingSide * kFours; i += 128) {
    int ownRow = i / kFours, ownOutput = i % kFours * 4;
    if (row + ownRow < layer.rows && output + ownOutput < layer.outputs)
      storeFourOutputs(layer, *reinterpret_cast<const float4 *>(tile + stagingIndex(ownRow, ownOutput)), row + ownRow,
                       output + ownOutput);
  }
}

/// Stores y from row `row` and output `output` on. `tiles` has a staging tile for each warpgroup; `group` is this
/// one.
template <bool IsTransposed>
__device__ inline void storeAccumulators(const LinearArguments &layer, const float (&sums)[128], float *tiles,
                                         int group, int32_t row, int32_t output) {
  constexpr int kParts = 128 / (kStagingSide / 2);
  float *own = tiles + group * kStagingSide * kStagingSide;
  auto sync = [&] { asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory"); };
#pragma unroll 1
  for (int part = 0; part < kParts; ++part) {
    // Register indices must be constants: the loop is unrolled and one iteration applies.
#pragma unroll
    for (int i = 0; i < kParts; ++i)
      if (i == part)
        stageAccumulators<IsTransposed>(sums, i, own);
    sync();
    if (isBiasOnly(layer) && output + kStagingSide <= layer.outputs)
      storeBiasOnlyTile(layer, own, row, output);
    else
      storeTile(layer, own, row, output);
    sync();
    (IsTransposed ? row : output) += kStagingSide;
  }
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_HOPPER_EPILOGUE_H
