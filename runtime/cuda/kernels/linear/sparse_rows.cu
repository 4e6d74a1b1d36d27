// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers of many rows by 2:4 weights, through the units for sparse matrices: blocks of 128 outputs by 64 or 128 rows, eight
// warps. Outputs are the rows of operand A, which is the sparse one; numbers of more than 16 bits are two planes, as in many_rows.cu.
//
// Tiles of 64 inputs come by cp.async, two on their way while one is multiplied. A warp has 64 outputs by 32 (or 16) rows: for a step
// of 32 inputs 16 products from 4 + 4 loads of four matrices, so that shared memory, which gives 128 bytes a cycle, is asked for 16 KiB
// by four such warps, which is as long as they multiply: 128 cycles on sm_80. Two blocks share a multiprocessor.

#include "../device/async_copy.h"
#include "../device/finish_rows.h"
#include "../device/matrix_units.h"
#include "sparse_metadata.h"
#include "sparse_rows.h"

namespace hone::cuda {

template <bool IsHalf, int TileRows, int XPlanes, int WeightPlanes> class SparseRows {
public:
  __device__ SparseRows(const ManyRowsArguments &args, char *shared)
      : args(args), shared(shared), base(sharedAddress(shared)), lane(threadIdx.x % 32),
        warpOutput(threadIdx.x / 32 % 2 * 64), warpRow(threadIdx.x / 64 * 8 * kRowTiles) {
    TilePlace place =
        tileOfBlock(blockIdx.x, divideUp(args.linear.rows, TileRows), divideUp(args.linear.outputs, kTileOutputs));
    firstRow = place.row * TileRows, firstOutput = place.output * kTileOutputs;
  }

  __device__ void run() {
    auto steps = static_cast<int32_t>(divideUp(args.depth, kSparseDepth));
    stepThroughStages<kStages>(
        steps, [&](int step, int stage, bool exists) { fetch(step, stage, exists); },
        [&](int stage, int step) { multiply(stage, step); });
    leaveSums();
    __syncthreads();
    finish();
  }

private:
  static constexpr int kStages = sparseStages(XPlanes + WeightPlanes), kRowTiles = TileRows / 32;
  static constexpr int kHalfBytes = TileRows * 64, kXBytes = 2 * kHalfBytes, kWeightBytes = kTileOutputs * 64;

  __device__ void fetch(int step, int stage, bool exists) {
    if (exists) {
      uint32_t x = base + stage * sparseStageBytes(TileRows, XPlanes, WeightPlanes), weight = x + XPlanes * kXBytes;
      fetchX(x, step);
      fetchWeight(weight, step);
      fetchPlaces(weight + WeightPlanes * kWeightBytes, step);
    }
    commitCopies();
  }

  __device__ void fetchX(uint32_t to, int step) {
    int part = threadIdx.x % 8;
    int64_t input = int64_t{step} * kSparseDepth + part * 8;
#pragma unroll
    for (int i = 0; i < XPlanes * TileRows / 32; ++i) {
      int plane = i / (TileRows / 32), row = i % (TileRows / 32) * 32 + threadIdx.x / 8;
      bool exists = firstRow + row < args.linear.rows && input < args.depth;
      const char *from = args.x.data;
      if (exists)
        from += plane * args.x.planeBytes + (firstRow + row) * args.x.rowBytes + input * 2;
      copyAsync(to + plane * kXBytes + part / 4 * kHalfBytes + swizzledByte(row, part % 4), from, exists);
    }
  }

  /// Outputs behind the last read the last one, since places must be those of two different numbers.
  __device__ int64_t outputAt(int row) const {
    int64_t output = firstOutput + row;
    return output < args.linear.outputs ? output : args.linear.outputs - 1;
  }

  __device__ void fetchWeight(uint32_t to, int step) {
    int part = threadIdx.x % 4;
    int64_t kept = int64_t{step} * (kSparseDepth / 2) + part * 8;
    bool exists = kept < args.depth / 2;
#pragma unroll
    for (int i = 0; i < WeightPlanes * kTileOutputs / 64; ++i) {
      int plane = i / (kTileOutputs / 64), row = i % (kTileOutputs / 64) * 64 + threadIdx.x / 4;
      const char *from = args.weight.data;
      if (exists)
        from += plane * args.weight.planeBytes + outputAt(row) * args.weight.rowBytes + kept * 2;
      copyAsync(to + plane * kWeightBytes + swizzledByte(row, part), from, exists);
    }
  }

  __device__ void fetchPlaces(uint32_t to, int step) {
    int row = threadIdx.x / 2;
    int64_t word = int64_t{step} * 2 + threadIdx.x % 2;
    if (word * 32 < args.depth)
      copyWordAsync(to + 4 * threadIdx.x, args.linear.indices + outputAt(row) * args.linear.indexStride + word * 4);
  }

  __device__ void multiply(int stage, int step) {
    int32_t at = stage * sparseStageBytes(TileRows, XPlanes, WeightPlanes);
    uint32_t x = base + at, weight = x + XPlanes * kXBytes;
    // Lanes 0 and 1 of four have the places of the first 32 inputs, and 2 and 3 those of the others.
    const auto *places =
        reinterpret_cast<const uint32_t *>(shared + at + XPlanes * kXBytes + WeightPlanes * kWeightBytes);
    uint32_t metadata[4];
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      const uint32_t *above = places + (warpOutput + 16 * tile + lane / 4) * 2 + lane % 4 / 2;
      metadata[tile] = metadataOf(above[0], above[16], lane);
    }
    multiplyHalf<0>(x, weight, metadata);
    if (int64_t{step} * kSparseDepth + 32 < args.depth)
      multiplyHalf<1>(x + kHalfBytes, weight, metadata);
  }

  template <int Half>
  __device__ void multiplyHalf(uint32_t x, uint32_t weight, const uint32_t (&metadata)[4]) {
    uint32_t b[XPlanes][kRowTiles][4];
#pragma unroll
    for (int plane = 0; plane < XPlanes; ++plane)
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile)
        loadMatrices(b[plane][tile], x + plane * kXBytes + swizzledByte(warpRow + tile * 8 + lane % 8, lane / 8));
#pragma unroll
    for (int output = 0; output < 4; ++output) {
      uint32_t a[WeightPlanes][4];
#pragma unroll
      for (int plane = 0; plane < WeightPlanes; ++plane)
        loadMatrices(a[plane], weight + plane * kWeightBytes +
                                   swizzledByte(warpOutput + output * 16 + lane % 16, Half * 2 + lane / 16));
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile)
#pragma unroll
        for (int product = 0; product < XPlanes + WeightPlanes - 1; ++product) {
          // (0, 0), then the rest of x, then the rest of W
          int weightPlane = product == XPlanes ? 1 : 0, xPlane = product == XPlanes ? 0 : product;
          multiplySparse<IsHalf, Half>(sums[output][tile], a[weightPlane], b[xPlane][tile], metadata[output]);
        }
    }
  }

  __device__ void leaveSums() {
    auto *to = reinterpret_cast<float *>(shared);
#pragma unroll
    for (int output = 0; output < 4; ++output)
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          to[sumPlace(warpRow + tile * 8 + lane % 4 * 2 + i % 2, warpOutput + output * 16 + lane / 4 + i / 2 * 8)] =
              sums[output][tile][i];
  }

  /// Threads side by side have outputs side by side.
  __device__ void finish() {
    const auto *from = reinterpret_cast<const float *>(shared);
#pragma unroll 1
    for (int i = threadIdx.x; i < TileRows * kTileOutputs; i += kManyRowsThreads) {
      int64_t row = firstRow + i / kTileOutputs, output = firstOutput + i % kTileOutputs;
      if (row < args.linear.rows && output < args.linear.outputs)
        finishNumber(args.linear, from[sumPlace(i / kTileOutputs, i % kTileOutputs)], row, output);
    }
  }

  const ManyRowsArguments &args;
  char *const shared;
  const uint32_t base;
  const int lane, warpOutput, warpRow;
  int64_t firstRow, firstOutput;
  float sums[4][kRowTiles][4] = {};
};

} // namespace hone::cuda

#define HONE_SPARSE_ROWS(name, isHalf, tileRows, xPlanes, weightPlanes)                                                \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kManyRowsThreads, xPlanes == 1 ? 2 : 1)                     \
      name(const __grid_constant__ hone::cuda::ManyRowsArguments args) {                                               \
    extern __shared__ __align__(128) char sparseRowsShared[];                                                          \
    hone::cuda::SparseRows<isHalf, tileRows, xPlanes, weightPlanes>(args, sparseRowsShared).run();                     \
  }

HONE_SPARSE_ROWS(sparse_rows_f16_64, true, 64, 1, 1)
HONE_SPARSE_ROWS(sparse_rows_f16_128, true, 128, 1, 1)
HONE_SPARSE_ROWS(sparse_rows_bf16_64, false, 64, 1, 1)
HONE_SPARSE_ROWS(sparse_rows_bf16_128, false, 128, 1, 1)
HONE_SPARSE_ROWS(sparse_rows_split_64, false, 64, 2, 1)
HONE_SPARSE_ROWS(sparse_rows_split_128, false, 128, 2, 1)
HONE_SPARSE_ROWS(sparse_rows_double_64, false, 64, 2, 2)
HONE_SPARSE_ROWS(sparse_rows_double_128, false, 128, 2, 2)
