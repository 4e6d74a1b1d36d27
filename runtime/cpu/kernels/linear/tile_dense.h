// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed bf16 weights by tiles.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_DENSE_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_DENSE_H

#ifdef __AMX_TILE__

#include "dense_activations.h"
#include "tiles.h"

namespace {

class TileDenseKernel {
public:
  static constexpr int64_t kWidth = 2;

  TileDenseKernel(const hone_tensor &x, const hone_tensor &weight, int64_t rows)
      : weight(static_cast<const uint8_t *>(weight.data)), steps(weight.sizes[1] / kStepPairs), panels(weight.sizes[0]),
        rows(rows), activations(x, rows, steps * kTileInputs, 0, kTileRows) {}

  static int64_t blockRows() { return 2 * kTileRows; }
  static int64_t blockHeight(int64_t) { return blockRows(); }
  int64_t sliceSteps(int64_t taskRows) const { return taskRows <= blockRows() ? steps : kSliceSteps; }

  class Worker {
  public:
    explicit Worker(const TileDenseKernel &kernel)
        : kernel(kernel), registers(smaller(kernel.rows, kTileRows), kTileRowBytes) {}

    void select(const Slice &next) { slice = next; }

    void multiply(int64_t row, int64_t rows, float *y, int64_t yStride, int64_t columns) {
      int64_t panelBytes = kernel.steps * kTileBytes, height = rows > kTileRows ? 2 : 1;
      const auto *x = reinterpret_cast<const uint8_t *>(kernel.activations.row(row)) + slice.step * kTileRowBytes;
      int64_t xStride = kernel.activations.rowStride() * static_cast<int64_t>(sizeof(uint16_t));
      TileOperands operands = {x,
                               x + kTileRows * xStride,
                               xStride,
                               kTileRowBytes,
                               kernel.weight + slice.panel * panelBytes + slice.step * kTileBytes,
                               panelBytes,
                               slice.steps,
                               kernel.rows <= blockRows() ? kTilePrefetch : 0};
      multiplyTiles<Bf16Products>(operands, height, slice.width, sums);
      for (int64_t r = 0; r < rows; ++r)
        for (int panel = 0; panel < slice.width; ++panel)
          addRow(y + r * yStride + panel * kLanes, r, panel, columns - panel * kLanes);
    }

  private:
    void addRow(float *y, int64_t r, int panel, int64_t columns) const {
      Vector sum = sums.floats(r < kTileRows ? 0 : 1, panel, r % kTileRows);
      storeColumns(y, slice.step == 0 ? sum : sum + loadColumns(y, columns), columns);
    }

    const TileDenseKernel &kernel;
    TileRegisters registers;
    TileSums sums;
    Slice slice = {};
  };

  /// Steps of a panel are pairs of inputs; steps of this kernel are tiles.
  static constexpr int64_t kTileInputs = hone::cpu::kBf16Inputs, kStepPairs = kTileInputs / 2;
  static constexpr int64_t kTileBytes = kTileRows * kTileRowBytes;
  /// Two panels of a slice stay in the first-level cache while all rows of a task pass by.
  static constexpr int64_t kSliceSteps = 8;
  static constexpr int64_t kTilePrefetch = 2 * kTileBytes;

  const uint8_t *weight;
  int64_t steps, panels, rows;
  DenseActivations<Bf16Format> activations;
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_DENSE_H
