// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of bf16 that become tiles, a step at a time, in the cache. A `Weight` has `panels`, `steps` of as many inputs
// as a tile has, and `unpack(panel, step, count, to)`.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_UNPACKED_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_UNPACKED_TILES_H

#ifdef __AMX_TILE__

#include "gemm_tiles.h"

namespace {

/// All tiles of an N-tile, for GEMM (large M).
template <typename Weight> class StepTiles {
public:
  explicit StepTiles(const Weight &weight) : panels(weight.panels), steps(weight.steps), weight(weight) {}

  static constexpr bool kIsUnpacked = true;

  /// Writes the tiles of `count` panels from `panel` on and `some` steps from `step` on to `memory`.
  WeightTiles take(int64_t panel, int64_t count, int64_t step, int64_t some, uint8_t *memory) const {
    for (int64_t p = 0; p < count; ++p)
      weight.unpack(panel + p, step, some, reinterpret_cast<float *>(memory + p * some * kWeightTileBytes));
    return {memory, some * kWeightTileBytes};
  }

  int64_t panels, steps;

private:
  Weight weight;
};

/// Up to sixteen rows: tiles are multiplied as soon as they are unpacked, and stay in the L1 cache.
template <typename Weight> class StepTileRowsKernel {
public:
  /// With fewer rows vector registers multiply what they load in less time than unpacking takes.
  static constexpr int64_t kFewestRows = 5;

  StepTileRowsKernel(const hone_tensor &x, const Weight &weight, int64_t rows)
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
    explicit Worker(const StepTileRowsKernel &kernel)
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
        for (int64_t r = 0, first = panel * slice.panelStride * kLanes; r < rows; ++r)
          storeColumns(y + r * yStride + first, sums.floats(panel, r), columns - first);
    }

  private:
    /// So many steps of four panels leave room in the L1 cache.
    static constexpr int64_t kTileSteps = 4, kPanelBytes = kTileSteps * kWeightTileBytes;

    /// A step of each panel after the other: a core reads the faster the more runs it reads at once.
    void unpack(int64_t step, int64_t some) {
      for (int64_t i = 0; i < some; ++i)
        for (int64_t panel = 0; panel < slice.width; ++panel)
          kernel.weight.unpack(slice.panel + panel * slice.panelStride, step + i, 1,
                               reinterpret_cast<float *>(tiles[panel][i]));
    }

    const StepTileRowsKernel &kernel;
    TileRegisters registers;
    TileSums sums;
    Slice slice = {};
    alignas(64) uint8_t tiles[kMostPanels][kTileSteps][kWeightTileBytes];
  };

  const Weight &weight;
  int64_t steps, panels;

private:
  ActivationTiles block;
  Scratch<uint8_t> activations;
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_UNPACKED_TILES_H
