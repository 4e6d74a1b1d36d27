// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: linear layers of many rows through matrix units: blocks of 64 or 128 rows by 128 outputs, eight warps.
//
// Numbers of more than 16 bits are two planes of bf16: x = xh + xl, W = wh + wl. Products xh · wh + xh · wl + xl · wh err by
// at most 3 · 2^-16 of x · W, and take three times the products of plain bf16.
//
// Tiles of 32 inputs come by cp.async, three on their way while one is multiplied. A warp has 64 rows by 32 (or 16)
// outputs: for a step of 16 inputs 16 products from 4 + 2 loads of four matrices, so that shared memory, which gives 128
// bytes a cycle, is asked for 3 KiB in the 64 cycles or more that four such warps multiply.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_MANY_ROWS_KERNEL_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_MANY_ROWS_KERNEL_H

#include "../linear/many_rows.h"
#include "async_copy.h"
#include "finish_rows.h"
#include "matrix_units.h"

namespace hone::cuda {

template <bool IsHalf, int TileRows, int XPlanes, int WeightPlanes, class Arguments = ManyRowsArguments>
class ManyRows {
public:
  __device__ ManyRows(const Arguments &args, TilePlace place, char *shared)
      : args(args), shared(shared), base(sharedAddress(shared)), warp(threadIdx.x / 32), lane(threadIdx.x % 32),
        warpRow(warp % kRowWarps * 64), warpOutput(warp / kRowWarps * 8 * kOutputTiles), firstRow(place.row * TileRows),
        firstOutput(place.output * kTileOutputs) {
#pragma unroll
    for (int i = 0; i < TileRows / 64; ++i) {
      int64_t row = firstRow + i * 64 + threadIdx.x / 4;
      xRows[i] = row < args.linear.rows ? args.x.data + args.linear.inputRow(row) * args.x.rowBytes : nullptr;
    }
#pragma unroll
    for (int i = 0; i < kTileOutputs / 64; ++i) {
      int64_t output = firstOutput + i * 64 + threadIdx.x / 4;
      weightRows[i] = output < args.linear.outputs ? args.weight.data + output * args.weight.rowBytes : nullptr;
    }
  }

  __device__ void run() {
    int32_t all = static_cast<int32_t>(divideUp(args.depth, kTileDepth)), first = blockIdx.y * args.steps;
    int32_t steps = all - first < args.steps ? all - first : args.steps;
    stepThroughStages<kStages>(
        steps, [&](int step, int stage, bool exists) { fetch(first + step, stage, exists); },
        [&](int stage, int) { multiply(stage); });
    leaveSums();
    __syncthreads();
    finish();
  }

private:
  static constexpr int kStages = stagesOf(XPlanes + WeightPlanes);
  static constexpr int kRowWarps = TileRows / 64, kOutputTiles = kTileOutputs * kRowWarps / 8 / 8;
  static constexpr int kXBytes = TileRows * 64, kWeightBytes = kTileOutputs * 64;

  /// One group of copies, also where there is nothing left to copy: groups are counted.
  __device__ void fetch(int step, int stage, bool exists) {
    if (exists) {
      uint32_t to = base + stage * stageBytes(TileRows, XPlanes, WeightPlanes);
      fetchPlanes<XPlanes>(to, args.x, xRows, step);
      fetchPlanes<WeightPlanes>(to + XPlanes * kXBytes, args.weight, weightRows, step);
    }
    commitCopies();
  }

  /// The thread's part of every 64th row, from `rows` on; null is a row that does not exist.
  template <int Planes, int Rows>
  __device__ void fetchPlanes(uint32_t to, const PlaneView &view, const char *const (&rows)[Rows], int step) {
    int part = threadIdx.x % 4;
    int64_t input = int64_t{step} * kTileDepth + part * 8;
#pragma unroll
    for (int i = 0; i < Planes * Rows; ++i) {
      int plane = i / Rows, row = i % Rows * 64 + threadIdx.x / 4;
      bool exists = rows[i % Rows] && input < args.depth;
      const char *from = exists ? rows[i % Rows] + plane * view.planeBytes + input * 2 : view.data;
      copyAsync(to + plane * Rows * 64 * 64 + swizzledByte(row, part), from, exists);
    }
  }

  __device__ void multiply(int stage) {
    uint32_t x = base + stage * stageBytes(TileRows, XPlanes, WeightPlanes), weight = x + XPlanes * kXBytes;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t b[WeightPlanes][kOutputTiles / 2][4];
#pragma unroll
      for (int plane = 0; plane < WeightPlanes; ++plane)
#pragma unroll
        for (int pair = 0; pair < kOutputTiles / 2; ++pair) {
          int row = warpOutput + pair * 16 + lane / 16 * 8 + lane % 8;
          loadMatrices(b[plane][pair], weight + plane * kWeightBytes + swizzledByte(row, half * 2 + lane / 8 % 2));
        }
#pragma unroll
      for (int tile = 0; tile < 4; ++tile) {
        uint32_t a[XPlanes][4];
#pragma unroll
        for (int plane = 0; plane < XPlanes; ++plane)
          loadMatrices(a[plane],
                       x + plane * kXBytes + swizzledByte(warpRow + tile * 16 + lane % 16, half * 2 + lane / 16));
#pragma unroll
        for (int output = 0; output < kOutputTiles; ++output)
#pragma unroll
          for (int product = 0; product < XPlanes + WeightPlanes - 1; ++product) {
            // (0, 0), then the rest of x, then the rest of W
            int weightPlane = product == XPlanes ? 1 : 0, xPlane = product == XPlanes ? 0 : product;
            const uint32_t (&from)[4] = b[weightPlane][output / 2];
            multiplyTiles(sums[tile][output], a[xPlane], from[output % 2 * 2], from[output % 2 * 2 + 1]);
          }
      }
    }
  }

  __device__ static void multiplyTiles(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if constexpr (IsHalf)
      multiplyF16(c, a, b0, b1);
    else
      multiplyBf16(c, a, b0, b1);
  }

  __device__ void leaveSums() {
    auto *to = reinterpret_cast<float *>(shared);
#pragma unroll
    for (int tile = 0; tile < 4; ++tile)
#pragma unroll
      for (int output = 0; output < kOutputTiles; ++output)
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
          int row = warpRow + tile * 16 + lane / 4 + i * 4;
          float2 pair = {sums[tile][output][i], sums[tile][output][i + 1]};
          *reinterpret_cast<float2 *>(to + sumPlace(row, warpOutput + output * 8 + lane % 4 * 2)) = pair;
        }
  }

  /// Threads side by side have outputs side by side.
  __device__ void finish() {
    const auto *from = reinterpret_cast<const float *>(shared);
    const auto &linear = args.linear;
#pragma unroll 1
    for (int i = threadIdx.x; i < TileRows * kTileOutputs; i += kManyRowsThreads) {
      int64_t row = firstRow + i / kTileOutputs, output = firstOutput + i % kTileOutputs;
      if (row >= linear.rows)
        break;
      if (output >= linear.outputs)
        continue;
      float sum = from[sumPlace(i / kTileOutputs, i % kTileOutputs)];
      if (args.parts)
        args.parts[(blockIdx.y * linear.rows + row) * linear.outputs + output] = sum;
      else
        finishNumber(linear, sum, linear.outputRow(row), output);
    }
  }

  const Arguments &args;
  char *const shared;
  const uint32_t base;
  const int warp, lane, warpRow, warpOutput;
  const int64_t firstRow, firstOutput;
  const char *xRows[TileRows / 64], *weightRows[kTileOutputs / 64];
  float sums[4][kOutputTiles][4] = {};
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_MANY_ROWS_KERNEL_H
