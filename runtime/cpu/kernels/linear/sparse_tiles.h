// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of bf16 of which two of every four inputs are kept, as dense tiles.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_TILES_H

#ifdef __AMX_TILE__

#include "sparse_formats.h"
#include "tile_engine.h"

namespace {

/// All tiles of a unit, for many rows.
class SparseTiles {
public:
  explicit SparseTiles(const SparseWeight<SparseBf16> &weight)
      : panels(weight.panels), steps(weight.steps), weight(weight) {
    static_assert(kChunkInputs == kTileStepInputs); // a chunk is a tile
  }

  static constexpr bool kIsUnpacked = true;

  /// Writes the tiles of `count` panels from `panel` on and `some` steps from `step` on to `memory`.
  WeightTiles take(int64_t panel, int64_t count, int64_t step, int64_t some, uint8_t *memory) const {
    for (int64_t p = 0; p < count; ++p)
      for (int64_t i = 0; i < some; ++i)
        weight.unpack(panel + p, step + i, reinterpret_cast<float *>(memory + (p * some + i) * kWeightTileBytes));
    return {memory, some * kWeightTileBytes};
  }

  int64_t panels, steps;

private:
  SparseWeight<SparseBf16> weight;
};

/// Up to sixteen rows: tiles are multiplied as soon as they are unpacked, and stay in the first-level cache.
class SparseTileRowsKernel {
public:
  /// With fewer rows vector registers pick activations in less time than unpacking takes.
  static constexpr int64_t kFewestRows = 5;

  SparseTileRowsKernel(const hone_tensor &x, const SparseWeight<SparseBf16> &weight, int64_t rows)
      : weight(weight), steps(weight.steps), panels(weight.panels), block(rows),
        activations(steps * block.stepBytes()) {
    block.convert(x, 0, rows, 0, steps, activations.data());
  }

  static int64_t blockRows() { return kTileRows; }
  static int64_t blockHeight(int64_t) { return kTileRows; }
  static int64_t width(int64_t) { return kMostPanels; }
  int64_t sliceSteps(int64_t) const { return steps; }

  class Worker {
  public:
    explicit Worker(const SparseTileRowsKernel &kernel)
        : kernel(kernel), registers(kernel.block.tileRows, kTileRowBytes) {}

    void select(const Slice &next) { slice = next; }

    void multiply(int64_t, int64_t rows, float *y, int64_t yStride, int64_t columns) {
      for (int64_t step = 0; step < slice.steps; step += kTileSteps) {
        int64_t some = smaller(kTileSteps, slice.steps - step);
        unpack(step, some);
        const uint8_t *x = kernel.activations.data() + step * kernel.block.stepBytes();
        TileOperands operands = {
            x,    x,  kTileRowBytes, kernel.block.stepBytes(), kTileRowBytes, tiles[0][0], kPanelBytes,
            some, {}, step != 0};
        multiplyTiles<Bf16Products>(operands, 1, slice.width, sums);
      }
      for (int64_t panel = 0; panel < slice.width; ++panel)
        for (int64_t r = 0, first = panel * slice.apart * kLanes; r < rows; ++r)
          storeColumns(y + r * yStride + first, sums.floats(panel, r), columns - first);
    }

  private:
    /// So many steps of four panels leave room in the first-level cache.
    static constexpr int64_t kTileSteps = 4, kPanelBytes = kTileSteps * kWeightTileBytes;

    void unpack(int64_t step, int64_t some) {
      for (int64_t i = 0; i < some; ++i)
        for (int64_t panel = 0; panel < slice.width; ++panel)
          kernel.weight.unpack(slice.panel + panel * slice.apart, step + i, reinterpret_cast<float *>(tiles[panel][i]));
    }

    const SparseTileRowsKernel &kernel;
    TileRegisters registers;
    TileSums sums;
    Slice slice = {};
    alignas(64) uint8_t tiles[kMostPanels][kTileSteps][kWeightTileBytes];
  };

  const SparseWeight<SparseBf16> &weight;
  int64_t steps, panels;

private:
  ActivationTiles block;
  Scratch<uint8_t> activations;
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_TILES_H
