// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: GEMV (1 to 16 rows) on tensor cores. Outputs are rows of operand A, rows of x columns of operand B.
//
// Weights go from global memory straight into the registers of operand A. The order of inputs within a product does
// not matter as long as A and B agree, so a lane reads 16 consecutive bytes of an output and uses them for two
// products: no shared memory, no transposition, and every sector is used whole.
//
// The kernel is memory-bound. A ring of kDepth chunks in registers is always in flight: with one tile 4 · 2 · 16
// bytes a lane, which is 4 KiB a warp, and of quantized values 3 KiB (2.5 of 5 bits, 2.25 and 1.5 of 3 and 2 bits), with their
// scales. Kernels of floats have 64 registers, so that an SM runs 32 warps, all others about 128 and 16 warps; an H200
// needs 4.8 TB/s · 0.8 µs / 132 = 29 KiB in flight an SM. Quantized values are bound by instructions: for 1 KiB of
// weights of 16 outputs there are about 200 with 4-bit values in wide chunks and inputs of bf16, and an SM issues 198
// while 1 KiB arrives (4 · 1 KiB / 20.7 bytes a cycle).
//
// Weights of the first chunks are prefetched before the kernel waits for the one before it (overlap.h).

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_GEMV_KERNEL_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_GEMV_KERNEL_H

#include "epilogue.h"
#include "input_rows.h"
#include "overlap.h"
#include "weights.h"

namespace hone::cuda {

/// One chunk of a tile of 16 outputs: rows g and g + 8 of operand A.
template <class Weight> struct TileChunk {
  Weight rows[2];
};

/// `Layer` is LinearArguments, or a class that maps the layer's rows to others; the block computes tile `rowTile` of
/// the rows, and outputs of `own`, block `block` of it. `args` has what sibling layers have in common. With IsGated
/// `args` is the gate and `own` the up layer: the first half of the tiles are outputs of the gate, the second half the
/// same outputs of the up layer.
template <class Weight, bool Split, int RowTiles, int ColumnTiles, class Layer = LinearArguments, bool IsGated = false>
class Gemv {
public:
  static constexpr int32_t kOutputs = IsGated ? 8 * RowTiles : 16 * RowTiles, kRows = 8 * ColumnTiles; // of a block

  __device__ Gemv(const Layer &args, int32_t rowTile) : Gemv(args, args, blockIdx.x, rowTile) {}

  __device__ Gemv(const Layer &args, const Layer &own, int32_t block, int32_t rowTile)
      : args(args), own(own), warp(threadIdx.x / 32), g(threadIdx.x / 4 % 8), t(threadIdx.x % 4),
        firstOutput(kOutputs * block), firstRow(kRows * rowTile),
        chunks(static_cast<int32_t>(divideUp(args.inputs, Weight::kChunkInputs))) {
#pragma unroll
    for (int i = 0; i < 2 * RowTiles; ++i) {
      // Outputs past the end read the last one; their sums are not stored.
      const Layer &layer = IsGated && i < RowTiles ? args : own;
      int64_t output = firstOutput + 8 * i % kOutputs + g;
      rows[i] = typename Weight::Row(layer, output < layer.outputs ? output : layer.outputs - 1);
    }
#pragma unroll
    for (int tile = 0; tile < ColumnTiles; ++tile) {
      int64_t row = firstRow + 8 * tile + g;
      inputs[tile] =
          row < args.rows ? args.x.data + args.x.offset(args.inputRow(row)) * bytesOf(args.x.dtype) : nullptr;
    }
  }

  __device__ void run(float *shared) {
    multiply(shared);
    reduceAndStore(own, shared, kRows, kOutputs, firstRow, firstOutput);
  }

  /// The sums of the block's warps, [slices][kRows][16 · RowTiles].
  __device__ void multiply(float *shared) {
    TileChunk<Weight> ring[kDepth][RowTiles];
    int32_t chunk = blockIdx.z * args.slices + warp;
    letNextBegin();
    if (!args.isConstant)
      waitForPrevious();
#pragma unroll
    for (int slot = 0; slot < kDepth; ++slot)
      readWeights(ring[slot], chunk + slot * args.stride);
    waitForPrevious();
    if (hasOutliers())
      multiplyOutliers(shared);
    readX(chunk, 0);
    for (; chunk < chunks; chunk += kDepth * args.stride) {
#pragma unroll
      for (int slot = 0; slot < kDepth; ++slot) {
        int32_t now = chunk + slot * args.stride;
        if (now >= chunks)
          break;
        multiplyChunk(ring[slot], now);
        readWeights(ring[slot], now + kDepth * args.stride);
      }
    }
    stageSums(shared);
  }

private:
  static constexpr int kDepth = RowTiles == 1 ? Weight::kDepth : Weight::kHasScales && ColumnTiles == 2 ? 1 : 2;

  __device__ void readWeights(TileChunk<Weight> (&tiles)[RowTiles], int32_t chunk) {
    if (chunk >= chunks)
      return;
#pragma unroll
    for (int i = 0; i < 2 * RowTiles; ++i) {
      Weight &weight = tiles[i / 2].rows[i % 2];
      weight.read(args, rows[i], chunk, t);
      if constexpr (Weight::kHasScales)
        weight.readScales(args, rows[i], chunk);
    }
  }

  __device__ void readX(int32_t chunk, int part) {
#pragma unroll
    for (int tile = 0; tile < ColumnTiles; ++tile)
      readInputs(raw[tile], inputs[tile], chunk * Weight::kChunkInputs + Weight::offsetOf(part, t),
                 static_cast<int32_t>(args.x.count));
  }

  /// Of the parts with one scale: the sums of their products, and the scales of rows g and g + 8 of each tile.
  struct ScaledProducts {
    float sums[RowTiles][ColumnTiles][4];
    GroupScale scales[RowTiles][2];
  };

  __device__ void multiplyChunk(const TileChunk<Weight> (&tiles)[RowTiles], int32_t chunk) {
    ScaledProducts scaled;
#pragma unroll
    for (int part = 0; part < Weight::kParts; ++part) {
      // The inputs of the next part are prefetched while this one is multiplied.
      RawInputs<Split> current[ColumnTiles];
#pragma unroll
      for (int tile = 0; tile < ColumnTiles; ++tile)
        current[tile] = raw[tile];
      if (part + 1 < Weight::kParts)
        readX(chunk, part + 1);
      else
        readX(chunk + args.stride, 0);
      if constexpr (Weight::kHasScales) {
        constexpr int kSharing = Weight::kParts / Weight::kScales; // parts with one scale
        if (part % kSharing == 0)
          begin(scaled, tiles, chunk, part / kSharing);
        multiplyPart(scaled.sums, tiles, part, current, scaled);
        if (part % kSharing == kSharing - 1)
          addScaled(scaled);
      } else {
        multiplyPart(sums, tiles, part, current, scaled);
      }
    }
  }

  __device__ void begin(ScaledProducts &scaled, const TileChunk<Weight> (&tiles)[RowTiles], int32_t chunk, int scale) {
#pragma unroll
    for (int rowTile = 0; rowTile < RowTiles; ++rowTile) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        scaled.scales[rowTile][i] = tiles[rowTile].rows[i].scale(args, chunk, scale);
#pragma unroll
      for (int tile = 0; tile < ColumnTiles; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          scaled.sums[rowTile][tile][i] = 0;
    }
  }

  __device__ void addScaled(const ScaledProducts &scaled) {
#pragma unroll
    for (int rowTile = 0; rowTile < RowTiles; ++rowTile)
#pragma unroll
      for (int tile = 0; tile < ColumnTiles; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          sums[rowTile][tile][i] += scaled.scales[rowTile][i / 2].scale * scaled.sums[rowTile][tile][i];
  }

  __device__ void multiplyPart(float (&to)[RowTiles][ColumnTiles][4], const TileChunk<Weight> (&tiles)[RowTiles],
                               int part, const RawInputs<Split> (&current)[ColumnTiles], const ScaledProducts &scaled) {
#pragma unroll
    for (int rowTile = 0; rowTile < RowTiles; ++rowTile) {
      uint32_t first[4], second[4];
      tiles[rowTile].rows[0].expand(args, part, t, scaled.scales[rowTile][0].zero, first);
      tiles[rowTile].rows[1].expand(args, part, t, scaled.scales[rowTile][1].zero, second);
#pragma unroll
      for (int tile = 0; tile < ColumnTiles; ++tile)
        multiply(to[rowTile][tile], first, second, Inputs<Split>(current[tile], Weight::kOrder));
    }
  }

  __device__ static void multiply(float (&c)[4], const uint32_t (&first)[4], const uint32_t (&second)[4],
                                  const Inputs<Split> &x) {
#pragma unroll
    for (int half = 0; half < 4; half += 2) {
      uint32_t a[4] = {first[half], second[half], first[half + 1], second[half + 1]};
      if constexpr (Weight::kIsHalf) {
        mmaF16(c, a, x.high[half], x.high[half + 1]);
      } else {
        mmaBf16(c, a, x.high[half], x.high[half + 1]);
        if constexpr (Split)
          mmaBf16(c, a, x.low[half], x.low[half + 1]);
      }
    }
  }

  /// sums[slice][row of x][output], as reduceAndStore reads them.
  __device__ float *ownSums(float *shared) const { return shared + warp * 8 * ColumnTiles * 16 * RowTiles; }

  __device__ bool hasOutliers() const {
    return Layer::kMayHaveOutliers && Weight::kMayHaveOutliers && args.outliers.starts;
  }

  /// Products with outliers, while the first weights are in flight. Half-warps are assigned the slots of the block's
  /// panels in turn. The sums are left where stageSums adds to them.
  __device__ void multiplyOutliers(float *shared) {
    int lane = threadIdx.x % 32, output = lane % kPanelOutputs;
#pragma unroll 1
    for (int rowTile = 0; rowTile < RowTiles; ++rowTile) {
      float products[8 * ColumnTiles] = {};
      int64_t panel = firstOutput / kPanelOutputs + rowTile;
      bool exists = panel * kPanelOutputs < args.outputs;
      int32_t end = exists ? args.outliers.starts[panel + 1] : 0;
      int32_t slot =
          (exists ? args.outliers.starts[panel] : 0) + 2 * (blockIdx.z * args.slices + warp) + lane / kPanelOutputs;
#pragma unroll 1
      for (; slot < end; slot += 2 * args.stride) {
        int64_t i = int64_t{slot} * kPanelOutputs + output;
        float element = fromF16(args.outliers.elements[i]);
        multiplyOutlier(products, args.outliers.columns[i], element);
      }
      float *to = ownSums(shared) + 16 * rowTile + output;
#pragma unroll
      for (int row = 0; row < 8 * ColumnTiles; ++row) {
        float sum = products[row] + __shfl_xor_sync(~0u, products[row], 16);
        if (lane < kPanelOutputs)
          to[row * 16 * RowTiles] = sum;
      }
    }
    __syncwarp();
  }

  __device__ void multiplyOutlier(float (&products)[8 * ColumnTiles], int64_t column, float element) const {
    constexpr int32_t kType = Split ? HONE_F32 : Weight::kIsHalf ? HONE_F16 : HONE_BF16;
#pragma unroll
    for (int row = 0; row < 8 * ColumnTiles; ++row)
      if (firstRow + row < args.rows)
        products[row] =
            fmaf(element, loadElement(args.x.data, args.x.offset(args.inputRow(firstRow + row)) + column, kType),
                 products[row]);
  }

  __device__ void stageSums(float *shared) {
    float *to = ownSums(shared);
#pragma unroll
    for (int rowTile = 0; rowTile < RowTiles; ++rowTile)
#pragma unroll
      for (int tile = 0; tile < ColumnTiles; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          int index = (8 * tile + 2 * t + i % 2) * 16 * RowTiles + 16 * rowTile + g + i / 2 * 8;
          to[index] = sums[rowTile][tile][i] + (hasOutliers() ? to[index] : 0);
        }
  }

  const Layer &args, &own;
  const int warp, g, t;
  const int32_t firstOutput, firstRow, chunks;
  typename Weight::Row rows[2 * RowTiles];
  const char *inputs[ColumnTiles];
  RawInputs<Split> raw[ColumnTiles];
  float sums[RowTiles][ColumnTiles][4] = {};
};

} // namespace hone::cuda

#define HONE_GEMV(name, weight, split, rowTiles, columnTiles)                                                          \
  extern "C" __global__ void __launch_bounds__(32 * hone::cuda::mostSlices(rowTiles),                                  \
                                               hone::cuda::weight::kResidents[rowTiles - 1])                           \
      name(const __grid_constant__ hone::cuda::LinearArguments args) {                                                 \
    extern __shared__ float shared[];                                                                                  \
    hone::cuda::Gemv<hone::cuda::weight, split, rowTiles, columnTiles>(args, blockIdx.y).run(shared);                  \
  }

#define HONE_GEMV_TILES(name, weight, split)                                                                           \
  HONE_GEMV(name##_1x1, weight, split, 1, 1)                                                                           \
  HONE_GEMV(name##_2x1, weight, split, 2, 1)                                                                           \
  HONE_GEMV(name##_2x2, weight, split, 2, 2)

/// The same of LinearLayers. Blocks of siblings have up to eight warps, as the registers for the block's layer would
/// not suffice for more.
#define HONE_GEMV_SIBLINGS(name, weight, split, rowTiles, columnTiles)                                                 \
  extern "C" __global__ void __launch_bounds__(                                                                        \
      32 * hone::cuda::kSiblingSlices, hone::cuda::residentsOfSiblings(hone::cuda::weight::kResidents, rowTiles))      \
      name(const __grid_constant__ hone::cuda::LinearLayers args) {                                                    \
    extern __shared__ float shared[];                                                                                  \
    const auto &own = args.layers[args.layerOf(blockIdx.x)];                                                           \
    hone::cuda::Gemv<hone::cuda::weight, split, rowTiles, columnTiles>(args.layers[0], own, args.blockOf(blockIdx.x),  \
                                                                       blockIdx.y)                                     \
        .run(shared);                                                                                                  \
  }

#define HONE_GEMV_GATED(name, weight, split, columnTiles)                                                              \
  extern "C" __global__ void __launch_bounds__(32 * hone::cuda::mostSlices(2), hone::cuda::weight::kResidents[1])      \
      name(const __grid_constant__ hone::cuda::LinearLayers args) {                                                    \
    extern __shared__ float shared[];                                                                                  \
    using Gemv = hone::cuda::Gemv<hone::cuda::weight, split, 2, columnTiles, hone::cuda::LinearArguments, true>;       \
    Gemv(args.layers[0], args.layers[1], blockIdx.x, blockIdx.y).multiply(shared);                                     \
    hone::cuda::reduceGated(args, shared, Gemv::kRows, Gemv::kOutputs, Gemv::kRows * blockIdx.y,                       \
                            Gemv::kOutputs * blockIdx.x);                                                              \
  }

#define HONE_GEMV_LAYERS(name, weight, split)                                                                          \
  HONE_GEMV_SIBLINGS(name##_siblings_1x1, weight, split, 1, 1)                                                         \
  HONE_GEMV_SIBLINGS(name##_siblings_2x2, weight, split, 2, 2)                                                         \
  HONE_GEMV_GATED(name##_gated_2x1, weight, split, 1)                                                                  \
  HONE_GEMV_GATED(name##_gated_2x2, weight, split, 2)

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_GEMV_KERNEL_H
