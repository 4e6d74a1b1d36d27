// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers of many rows: tiles of a product, which block has which, and where they lie in shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_MANY_ROWS_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_MANY_ROWS_H

#include "linear_arguments.h"

namespace hone::cuda {

/// The operands of matrix units: dense rows of numbers of 16 bits, zeros behind the inputs. A matrix of wider numbers is the sum of
/// two planes, one behind the other: the numbers rounded, and what rounding left.
struct PlaneView {
  const char *data;
  int64_t rowBytes, planeBytes;
};

template <class Layer> struct PlanesOfLayer {
  Layer linear; // its outputs, bias, factor, residual and y; x and weight lie in the planes
  PlaneView x, weight;
  int64_t depth; // numbers of a row of a plane, a multiple of eight
  float
      *parts; // where blocks that share a tile leave their sums, [blocks of a tile][rows][outputs]; null: y is finished
  int32_t steps; // tiles of inputs that a block takes
};
using ManyRowsArguments = PlanesOfLayer<LinearArguments>;

constexpr int32_t kTileOutputs = 128, kTileDepth = 32, kManyRowsThreads = 256;

/// Rows of x that a block takes.
HONE_HOST_DEVICE constexpr int32_t tileRowsOf(int64_t rows) { return rows <= 64 ? 64 : 128; }

/// How many tiles of operands are in shared memory at once, all but one of them on their way.
HONE_HOST_DEVICE constexpr int32_t stagesOf(int32_t planes) { return planes <= 2 ? 4 : 3; }

HONE_HOST_DEVICE constexpr int32_t stageBytes(int32_t tileRows, int32_t xPlanes, int32_t weightPlanes) {
  return (tileRows * xPlanes + kTileOutputs * weightPlanes) * kTileDepth * 2;
}

/// The tiles of operands, and afterwards the sums.
HONE_HOST_DEVICE constexpr int32_t manyRowsSharedBytes(int32_t tileRows, int32_t xPlanes, int32_t weightPlanes) {
  int32_t operands = stagesOf(xPlanes + weightPlanes) * stageBytes(tileRows, xPlanes, weightPlanes);
  int32_t sums = tileRows * kTileOutputs * 4;
  return operands > sums ? operands : sums;
}

/// Byte of the 16 bytes number `part` (0 to 3) of a row of a tile. Rows have 64 bytes; parts change places from pair of rows to pair of
/// rows, so that eight rows, which ldmatrix reads at once, lie in different banks.
HONE_HOST_DEVICE constexpr int32_t swizzledByte(int32_t row, int32_t part) {
  return row * 64 + (part ^ (row >> 1 & 3)) * 16;
}

/// Place of sum (row, output) of a tile: lanes that write at once are eight rows with pairs of outputs each.
HONE_HOST_DEVICE constexpr int32_t sumPlace(int32_t row, int32_t output) {
  return row * kTileOutputs + (output ^ (row & 3) << 3);
}

/// How the tiles of inputs are divided among blocks that share a tile of a product: `splits` blocks take `steps` tiles each, but for the
/// last, which takes what is left.
struct SplitPlan {
  int32_t splits, steps;
};

/// Where tiles of a product are fewer than half of the multiprocessors, blocks share them, as many as there is room for. Each keeps eight
/// tiles of inputs at least, as its first ones wait for memory, and its sums go to memory and back.
HONE_HOST_DEVICE constexpr SplitPlan planSplits(int64_t tiles, int64_t depth, int32_t multiprocessors) {
  constexpr int64_t kFewestSteps = 8;
  int64_t steps = divideUp(depth, kTileDepth), splits = tiles > 0 ? multiprocessors / tiles : 1;
  int64_t most = steps / kFewestSteps;
  splits = splits < most ? splits : most;
  if (splits < 2)
    return {1, static_cast<int32_t>(steps)};
  int64_t own = divideUp(steps, splits);
  return {static_cast<int32_t>(divideUp(steps, own)), static_cast<int32_t>(own)};
}

/// How many outputs of weights are expanded at once: whole tiles, up to 64 MiB of `outputBytes` each, so that what is expanded
/// does not depend on how large a layer is.
HONE_HOST_DEVICE constexpr int64_t outputsOfSlab(int64_t outputs, int64_t outputBytes) {
  int64_t most = (int64_t{64} << 20) / (outputBytes > 0 ? outputBytes : 1) / kTileOutputs * kTileOutputs;
  most = most > kTileOutputs ? most : kTileOutputs;
  return outputs < most ? outputs : most;
}

struct TilePlace {
  int64_t row, output;
};

/// Which tile a block has. Blocks that run together, about as many as there are multiprocessors, take a square of tiles and not a
/// long row, so that what they read fits into the second-level cache: eight tiles of rows by all outputs, and so on.
HONE_HOST_DEVICE constexpr TilePlace tileOfBlock(int64_t block, int64_t rowTiles, int64_t outputTiles) {
  constexpr int64_t kBand = 8;
  int64_t band = block / (kBand * outputTiles), first = band * kBand;
  int64_t height = rowTiles - first < kBand ? rowTiles - first : kBand;
  int64_t inside = block - band * kBand * outputTiles;
  return {first + inside % height, inside / height};
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_MANY_ROWS_H
