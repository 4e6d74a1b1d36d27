// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: GEMM on tensor cores by mma.sync: blocks of 64 or 128 rows by 128 outputs, eight warps.
//
// Elements of more than 16 bits are split into two planes of bf16, the hi and the lo terms: x = xh + xl, W = wh + wl.
// xh · wh + xh · wl + xl · wh errs by at most 3 · 2^-16 of x · W, for three times the products of bf16.
//
// A multistage pipeline of cp.async loads tiles of 32 inputs, three ahead. A warp computes 64 rows by 32 (or 16)
// outputs: a step of 16 inputs is 16 products and 4 + 2 ldmatrix.x4. Four such warps read 3 KiB of shared memory, at
// 128 bytes a cycle, in the 64 cycles or more of their products.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_GEMM_KERNEL_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_GEMM_KERNEL_H

#include "../linear/gemm.h"
#include "cp_async.h"
#include "epilogue.h"
#include "mma.h"

namespace hone::cuda {

template <bool IsHalf, int TileRows, int XPlanes, int WeightPlanes, class Arguments = GemmArguments>
class Gemm {
public:
  __device__ Gemm(const Arguments &args, TileIndex index, char *shared)
      : args(args), shared(shared), base(sharedAddress(shared)), warp(threadIdx.x / 32), lane(threadIdx.x % 32),
        warpRow(warp % kRowWarps * 64), warpOutput(warp / kRowWarps * 8 * kOutputTiles), firstRow(index.row * TileRows),
        firstOutput(index.output * kTileOutputs) {
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
    runPipeline<kStages>(
        steps, [&](int step, int stage, bool exists) { fetch(first + step, stage, exists); },
        [&](int stage, int) { multiply(stage); });
    stageSums();
    __syncthreads();
    storeOutputs();
  }

private:
  static constexpr int kStages = stagesOf(XPlanes + WeightPlanes);
  static constexpr int kRowWarps = TileRows / 64, kOutputTiles = kTileOutputs * kRowWarps / 8 / 8;
  static constexpr int kXBytes = TileRows * 64, kWeightBytes = kTileOutputs * 64;

  /// One commit group, also where there is nothing to copy: groups are counted.
  __device__ void fetch(int step, int stage, bool exists) {
    if (exists) {
      uint32_t to = base + stage * stageBytes(TileRows, XPlanes, WeightPlanes);
      fetchPlanes<XPlanes>(to, args.x, xRows, step);
      fetchPlanes<WeightPlanes>(to + XPlanes * kXBytes, args.weight, weightRows, step);
    }
    cpAsyncCommitGroup();
  }

  /// The thread's 16 bytes of every 64th row of `rows`; null is a row that does not exist.
  template <int Planes, int Rows>
  __device__ void fetchPlanes(uint32_t to, const PlaneView &view, const char *const (&rows)[Rows], int step) {
    int part = threadIdx.x % 4;
    int64_t input = int64_t{step} * kTileDepth + part * 8;
#pragma unroll
    for (int i = 0; i < Planes * Rows; ++i) {
      int plane = i / Rows, row = i % Rows * 64 + threadIdx.x / 4;
      bool exists = rows[i % Rows] && input < args.depth;
      const char *from = exists ? rows[i % Rows] + plane * view.planeBytes + input * 2 : view.data;
      cpAsync16(to + plane * Rows * 64 * 64 + swizzledByte(row, part), from, exists);
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
          ldmatrixX4(b[plane][pair], weight + plane * kWeightBytes + swizzledByte(row, half * 2 + lane / 8 % 2));
        }
#pragma unroll
      for (int tile = 0; tile < 4; ++tile) {
        uint32_t a[XPlanes][4];
#pragma unroll
        for (int plane = 0; plane < XPlanes; ++plane)
          ldmatrixX4(a[plane],
                     x + plane * kXBytes + swizzledByte(warpRow + tile * 16 + lane % 16, half * 2 + lane / 16));
#pragma unroll
        for (int output = 0; output < kOutputTiles; ++output)
#pragma unroll
          for (int product = 0; product < XPlanes + WeightPlanes - 1; ++product) {
            // hi · hi, then x's lo terms, then W's
            int weightPlane = product == XPlanes ? 1 : 0, xPlane = product == XPlanes ? 0 : product;
            const uint32_t (&from)[4] = b[weightPlane][output / 2];
            multiplyTiles(sums[tile][output], a[xPlane], from[output % 2 * 2], from[output % 2 * 2 + 1]);
          }
      }
    }
  }

  __device__ static void multiplyTiles(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if constexpr (IsHalf)
      mmaF16(c, a, b0, b1);
    else
      mmaBf16(c, a, b0, b1);
  }

  __device__ void stageSums() {
    auto *to = reinterpret_cast<float *>(shared);
#pragma unroll
    for (int tile = 0; tile < 4; ++tile)
#pragma unroll
      for (int output = 0; output < kOutputTiles; ++output)
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
          int row = warpRow + tile * 16 + lane / 4 + i * 4;
          float2 pair = {sums[tile][output][i], sums[tile][output][i + 1]};
          *reinterpret_cast<float2 *>(to + sumIndex(row, warpOutput + output * 8 + lane % 4 * 2)) = pair;
        }
  }

  /// Consecutive threads store consecutive outputs.
  __device__ void storeOutputs() {
    const auto *from = reinterpret_cast<const float *>(shared);
    const auto &linear = args.linear;
#pragma unroll 1
    for (int i = threadIdx.x; i < TileRows * kTileOutputs; i += kGemmThreads) {
      int64_t row = firstRow + i / kTileOutputs, output = firstOutput + i % kTileOutputs;
      if (row >= linear.rows)
        break;
      if (output >= linear.outputs)
        continue;
      float sum = from[sumIndex(i / kTileOutputs, i % kTileOutputs)];
      if (args.partialSums)
        args.partialSums[(blockIdx.y * linear.rows + row) * linear.outputs + output] = sum;
      else
        storeOutput(linear, sum, linear.outputRow(row), output);
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

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_GEMM_KERNEL_H
