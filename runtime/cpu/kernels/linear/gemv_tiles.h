// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed bf16 weights by tiles for up to sixteen rows: as many panels at once as registers hold, read from memory once.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMV_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMV_TILES_H

#ifdef __AMX_TILE__

#include "gemm_tiles.h"

namespace {

class TileRowsKernel {
public:
  /// With fewer rows vector registers keep up with memory as well, and no sums pass through it.
  static constexpr int64_t kFewestRows = 3;

  TileRowsKernel(const hone_tensor &x, const hone_tensor &weight, int64_t rows)
      : weight(static_cast<const uint8_t *>(weight.data)), steps(weight.sizes[1] * 2 / kTileStepInputs),
        panels(weight.sizes[0]), block(rows), activations(steps * block.stepBytes()) {
    block.convert(x, 0, rows, 0, steps, activations.data());
  }

  static int64_t blockRows() { return kTileRows; }
  static int64_t blockHeight(int64_t) { return kTileRows; }
  static int64_t width(int64_t) { return kMostPanels; }
  int64_t sliceSteps(int64_t) const { return steps; }

  class Worker {
  public:
    explicit Worker(const TileRowsKernel &kernel) : kernel(kernel), registers(kernel.block.tileRows, kTileRowBytes) {}

    void select(const Slice &next) { slice = next; }

    void multiply(int64_t, int64_t rows, float *y, int64_t yStride, int64_t columns) {
      constexpr int64_t tileBytes = kWeightTileBytes, tilePrefetch = 4;
      const uint8_t *x = kernel.activations.data();
      int64_t panelBytes = kernel.steps * tileBytes;
      const uint8_t *from = kernel.weight + slice.panel * panelBytes;
      TileOperands operands = {x,
                               x,
                               kTileRowBytes,
                               kernel.block.stepBytes(),
                               kTileRowBytes,
                               from,
                               slice.panelStride * panelBytes,
                               slice.steps,
                               {from + tilePrefetch * tileBytes, kTileRows, true}};
      multiplyTiles<Bf16Products>(operands, 1, slice.width, sums);
      for (int64_t panel = 0; panel < slice.width; ++panel)
        for (int64_t r = 0, first = panel * slice.panelStride * kLanes; r < rows; ++r)
          storeColumns(y + r * yStride + first, sums.floats(panel, r), columns - first);
    }

  private:
    const TileRowsKernel &kernel;
    TileRegisters registers;
    TileSums sums;
    Slice slice = {};
  };

  const uint8_t *weight;
  int64_t steps, panels;

private:
  ActivationTiles block;
  Scratch<uint8_t> activations;
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMV_TILES_H
