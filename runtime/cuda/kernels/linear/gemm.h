// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM, linear layers with large M: tiles, their order and the layout of shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_GEMM_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_GEMM_H

#include "linear_arguments.h"

namespace hone::cuda {

/// An operand of tensor cores: dense rows of 16-bit elements, zero-padded. A matrix of wider elements is the sum of
/// two planes, one after the other: the rounded elements (hi terms) and what rounding left (lo terms).
struct PlaneView {
  const char *data;
  int64_t rowBytes, planeBytes;
};

template <class Layer> struct PlanesOfLayer {
  Layer linear; // its outputs, bias, factor, residual and y; x and weight are planes
  PlaneView x, weight;
  int64_t depth;      // elements of a row of a plane, a multiple of eight
  float *partialSums; // of split-K, [blocks of a tile][rows][outputs]; null: a block stores y
  int32_t steps;      // tiles of inputs of a block
};
using GemmArguments = PlanesOfLayer<LinearArguments>;

constexpr int32_t kTileOutputs = 128, kTileDepth = 32, kGemmThreads = 256;

/// Rows of x of a block.
HONE_HOST_DEVICE constexpr int32_t tileRowsOf(int64_t rows) { return rows <= 64 ? 64 : 128; }

/// Pipeline stages, of which all but one are in flight.
HONE_HOST_DEVICE constexpr int32_t stagesOf(int32_t planes) { return planes <= 2 ? 4 : 3; }

HONE_HOST_DEVICE constexpr int32_t stageBytes(int32_t tileRows, int32_t xPlanes, int32_t weightPlanes) {
  return (tileRows * xPlanes + kTileOutputs * weightPlanes) * kTileDepth * 2;
}

/// Stages of operands; the accumulators reuse the memory.
HONE_HOST_DEVICE constexpr int32_t gemmSharedBytes(int32_t tileRows, int32_t xPlanes, int32_t weightPlanes) {
  int32_t operands = stagesOf(xPlanes + weightPlanes) * stageBytes(tileRows, xPlanes, weightPlanes);
  int32_t sums = tileRows * kTileOutputs * 4;
  return operands > sums ? operands : sums;
}

/// Byte offset of 16-byte chunk `part` (0 to 3) of a row of a tile. Rows have 64 bytes; chunks are swizzled by pairs
/// of rows, so that the eight rows that ldmatrix reads have no bank conflicts.
HONE_HOST_DEVICE constexpr int32_t swizzledByte(int32_t row, int32_t part) {
  return row * 64 + (part ^ (row >> 1 & 3)) * 16;
}

/// Index of sum (row, output) of a tile, swizzled: lanes that write at once have eight rows with pairs of outputs
/// each.
HONE_HOST_DEVICE constexpr int32_t sumIndex(int32_t row, int32_t output) {
  return row * kTileOutputs + (output ^ (row & 3) << 3);
}

/// Split-K: `splits` blocks take `steps` tiles of inputs each of an output tile, but for the last, which takes the
/// rest.
struct SplitKPlan {
  int32_t splits, steps;
};

/// Split-K where output tiles are fewer than half of the SMs. A block keeps eight tiles of inputs at least, as its
/// first loads expose their latency and its partial sums take a round trip through memory.
HONE_HOST_DEVICE constexpr SplitKPlan planSplitK(int64_t tiles, int64_t depth, int32_t multiprocessors) {
  constexpr int64_t kFewestSteps = 8;
  int64_t steps = divideUp(depth, kTileDepth), splits = tiles > 0 ? multiprocessors / tiles : 1;
  int64_t most = steps / kFewestSteps;
  splits = splits < most ? splits : most;
  if (splits < 2)
    return {1, static_cast<int32_t>(steps)};
  int64_t own = divideUp(steps, splits);
  return {static_cast<int32_t>(divideUp(steps, own)), static_cast<int32_t>(own)};
}

/// How many outputs are converted at once: whole tiles, up to 64 MiB of `outputBytes` each, so that the memory does
/// not depend on the size of a layer.
HONE_HOST_DEVICE constexpr int64_t outputsOfSlab(int64_t outputs, int64_t outputBytes) {
  int64_t most = (int64_t{64} << 20) / (outputBytes > 0 ? outputBytes : 1) / kTileOutputs * kTileOutputs;
  most = most > kTileOutputs ? most : kTileOutputs;
  return outputs < most ? outputs : most;
}

struct TileIndex {
  int64_t row, output;
};

/// The tile of a block. Tiles are rasterized in groups of eight tiles of rows by all outputs, so that the operands of
/// blocks that run together, about one an SM, fit into L2.
HONE_HOST_DEVICE constexpr TileIndex tileOfBlock(int64_t block, int64_t rowTiles, int64_t outputTiles) {
  constexpr int64_t kGroup = 8;
  int64_t group = block / (kGroup * outputTiles), first = group * kGroup;
  int64_t height = rowTiles - first < kGroup ? rowTiles - first : kGroup;
  int64_t inside = block - group * kGroup * outputTiles;
  return {first + inside % height, inside / height};
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_GEMM_H
