// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM by 2:4 weights on sparse tensor cores (mma.sp): blocks of 128 outputs by 64 or 128 rows, eight warps. Outputs
// are rows of operand A, which is the sparse one; elements of more than 16 bits are two planes, as in gemm.cu.
//
// A multistage pipeline of cp.async loads tiles of 64 inputs, two ahead. A warp computes 64 outputs by 32 (or 16)
// rows: a step of 32 inputs is 16 products and 4 + 4 ldmatrix.x4. Four such warps read 16 KiB of shared memory, which
// takes as long as their products: 128 cycles on sm_80. An SM runs two blocks.

#include "../device/cp_async.h"
#include "../device/epilogue.h"
#include "../device/mma.h"
#include "sparse_gemm.h"
#include "sparse_metadata.h"

namespace hone::cuda {

template <bool IsHalf, int TileRows, int XPlanes, int WeightPlanes> class SparseGemm {
public:
  __device__ SparseGemm(const GemmArguments &args, char *shared)
      : args(args), shared(shared), base(sharedAddress(shared)), lane(threadIdx.x % 32),
        warpOutput(threadIdx.x / 32 % 2 * 64), warpRow(threadIdx.x / 64 * 8 * kRowTiles) {
    TileIndex index =
        tileOfBlock(blockIdx.x, divideUp(args.linear.rows, TileRows), divideUp(args.linear.outputs, kTileOutputs));
    firstRow = index.row * TileRows, firstOutput = index.output * kTileOutputs;
  }

  __device__ void run() {
    auto steps = static_cast<int32_t>(divideUp(args.depth, kSparseDepth));
    runPipeline<kStages>(
        steps, [&](int step, int stage, bool exists) { fetch(step, stage, exists); },
        [&](int stage, int step) { multiply(stage, step); });
    stageSums();
    __syncthreads();
    storeOutputs();
  }

private:
  static constexpr int kStages = sparseStages(XPlanes + WeightPlanes), kRowTiles = TileRows / 32;
  static constexpr int kHalfBytes = TileRows * 64, kXBytes = 2 * kHalfBytes, kWeightBytes = kTileOutputs * 64;

  __device__ void fetch(int step, int stage, bool exists) {
    if (exists) {
      uint32_t x = base + stage * sparseStageBytes(TileRows, XPlanes, WeightPlanes), weight = x + XPlanes * kXBytes;
      fetchX(x, step);
      fetchWeight(weight, step);
      fetchIndices(weight + WeightPlanes * kWeightBytes, step);
    }
    cpAsyncCommitGroup();
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
      cpAsync16(to + plane * kXBytes + part / 4 * kHalfBytes + swizzledByte(row, part % 4), from, exists);
    }
  }

  /// Outputs past the end read the last one, since indices must name two distinct inputs.
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
      cpAsync16(to + plane * kWeightBytes + swizzledByte(row, part), from, exists);
    }
  }

  __device__ void fetchIndices(uint32_t to, int step) {
    int row = threadIdx.x / 2;
    int64_t word = int64_t{step} * 2 + threadIdx.x % 2;
    if (word * 32 < args.depth)
      cpAsync4(to + 4 * threadIdx.x, args.linear.indices + outputAt(row) * args.linear.indexStride + word * 4);
  }

  __device__ void multiply(int stage, int step) {
    int32_t at = stage * sparseStageBytes(TileRows, XPlanes, WeightPlanes);
    uint32_t x = base + at, weight = x + XPlanes * kXBytes;
    // Lanes 0 and 1 of four have the indices of the first 32 inputs, lanes 2 and 3 those of the others.
    const auto *indices =
        reinterpret_cast<const uint32_t *>(shared + at + XPlanes * kXBytes + WeightPlanes * kWeightBytes);
    uint32_t metadata[4];
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      const uint32_t *above = indices + (warpOutput + 16 * tile + lane / 4) * 2 + lane % 4 / 2;
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
        ldmatrixX4(b[plane][tile], x + plane * kXBytes + swizzledByte(warpRow + tile * 8 + lane % 8, lane / 8));
#pragma unroll
    for (int output = 0; output < 4; ++output) {
      uint32_t a[WeightPlanes][4];
#pragma unroll
      for (int plane = 0; plane < WeightPlanes; ++plane)
        ldmatrixX4(a[plane], weight + plane * kWeightBytes +
                                 swizzledByte(warpOutput + output * 16 + lane % 16, Half * 2 + lane / 16));
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile)
#pragma unroll
        for (int product = 0; product < XPlanes + WeightPlanes - 1; ++product) {
          // hi · hi, then x's lo terms, then W's
          int weightPlane = product == XPlanes ? 1 : 0, xPlane = product == XPlanes ? 0 : product;
          mmaSparse<IsHalf, Half>(sums[output][tile], a[weightPlane], b[xPlane][tile], metadata[output]);
        }
    }
  }

  __device__ void stageSums() {
    auto *to = reinterpret_cast<float *>(shared);
#pragma unroll
    for (int output = 0; output < 4; ++output)
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          to[sumIndex(warpRow + tile * 8 + lane % 4 * 2 + i % 2, warpOutput + output * 16 + lane / 4 + i / 2 * 8)] =
              sums[output][tile][i];
  }

  /// Consecutive threads store consecutive outputs.
  __device__ void storeOutputs() {
    const auto *from = reinterpret_cast<const float *>(shared);
#pragma unroll 1
    for (int i = threadIdx.x; i < TileRows * kTileOutputs; i += kGemmThreads) {
      int64_t row = firstRow + i / kTileOutputs, output = firstOutput + i % kTileOutputs;
      if (row < args.linear.rows && output < args.linear.outputs)
        storeOutput(args.linear, from[sumIndex(i / kTileOutputs, i % kTileOutputs)], row, output);
    }
  }

  const GemmArguments &args;
  char *const shared;
  const uint32_t base;
  const int lane, warpOutput, warpRow;
  int64_t firstRow, firstOutput;
  float sums[4][kRowTiles][4] = {};
};

} // namespace hone::cuda

#define HONE_SPARSE_GEMM(name, isHalf, tileRows, xPlanes, weightPlanes)                                                \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kGemmThreads, xPlanes == 1 ? 2 : 1)                         \
      name(const __grid_constant__ hone::cuda::GemmArguments args) {                                                   \
    extern __shared__ __align__(128) char sparseGemmShared[];                                                          \
    hone::cuda::SparseGemm<isHalf, tileRows, xPlanes, weightPlanes>(args, sparseGemmShared).run();                     \
  }

HONE_SPARSE_GEMM(sparse_gemm_f16_64, true, 64, 1, 1)
HONE_SPARSE_GEMM(sparse_gemm_f16_128, true, 128, 1, 1)
HONE_SPARSE_GEMM(sparse_gemm_bf16_64, false, 64, 1, 1)
HONE_SPARSE_GEMM(sparse_gemm_bf16_128, false, 128, 1, 1)
HONE_SPARSE_GEMM(sparse_gemm_split_64, false, 64, 2, 1)
HONE_SPARSE_GEMM(sparse_gemm_split_128, false, 128, 2, 1)
HONE_SPARSE_GEMM(sparse_gemm_double_64, false, 64, 2, 2)
HONE_SPARSE_GEMM(sparse_gemm_double_128, false, 128, 2, 2)
