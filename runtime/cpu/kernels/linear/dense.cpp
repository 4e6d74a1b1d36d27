// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed f32, f16 and bf16 weights.

#include "../kernels.h"

#include "dense_activations.h"
#include "dense_block.h"
#include "layer.h"
#include "tile_dense.h"
#include "tile_rows.h"

namespace hone::cpu::HONE_LEVEL_NAMESPACE {
namespace {

/// Products by vector registers.
template <typename Format> class DenseKernel {
public:
  /// kDensePanels panels of a slice stay in the first-level cache while all rows of a task pass by.
  static constexpr int64_t kSliceWords = 256;

  DenseKernel(const hone_tensor &x, const hone_tensor &weight, int64_t rows)
      : weight(static_cast<const uint8_t *>(weight.data)), steps(weight.sizes[1]), panels(weight.sizes[0]),
        height(evenHeight(rows, kDenseRows)), activations(x, rows, steps * Format::kStepWords, height) {}

  static int64_t blockRows() { return kDenseRows; }
  int64_t blockHeight(int64_t) const { return height; }
  static int64_t width(int64_t rows) { return widthOf(rows, kDenseSums, kDensePanels); }
  int64_t sliceSteps(int64_t rows) const { return rows <= kDenseRows ? steps : kSliceWords / Format::kStepWords; }

  class Worker {
  public:
    explicit Worker(const DenseKernel &kernel) : kernel(kernel) {}

    void select(const Slice &next) {
      slice = next;
      panelBytes = kernel.steps * Format::kBytes;
      from = kernel.weight + slice.panel * panelBytes + slice.step * Format::kBytes;
      if constexpr (Format::kUnpacks)
        if (slice.taskRows > kDenseRows)
          unpack();
    }

    void multiply(int64_t row, int64_t rows, float *y, int64_t yStride, int64_t columns) const {
      DenseOperands operands = {from,
                                slice.apart * panelBytes,
                                slice.apart * kLanes,
                                slice.steps,
                                kernel.activations.block(row, rows, slice.step * Format::kStepWords),
                                y,
                                yStride,
                                columns,
                                slice.step != 0};
      if (!Format::kUnpacks || slice.taskRows <= kDenseRows)
        return run<Format>(rows, operands);
      operands.steps *= Format::kStepWords;
      run<F32Format>(rows, operands);
    }

  private:
    /// Many rows read the weights of a slice as floats.
    void unpack() {
      constexpr int64_t bytes = Format::kStepWords * F32Format::kBytes;
      for (int64_t panel = 0; panel < slice.width; ++panel)
        for (int64_t step = 0; step < slice.steps; ++step) {
          const uint8_t *packed = from + panel * panelBytes + step * Format::kBytes;
          Format::unpack(packed, reinterpret_cast<float *>(unpacked[panel] + step * bytes));
          prefetchAhead(packed, kWeightPrefetch);
        }
      from = unpacked[0];
      panelBytes = sizeof unpacked[0];
    }

    template <typename Stored> void run(int64_t rows, const DenseOperands &operands) const {
      runPanels<DenseBlock<Stored>, kDenseSums, kDenseRows>(slice.width, rows, operands);
    }

    const DenseKernel &kernel;
    Slice slice = {};
    const uint8_t *from = nullptr;
    int64_t panelBytes = 0;
    alignas(64) uint8_t unpacked[kDensePanels][Format::kUnpacks ? kSliceWords * F32Format::kBytes : 64];
  };

  const uint8_t *weight;
  int64_t steps, panels, height;
  DenseActivations<Format> activations;
};

template <typename Format>
void runLayer(const hone_tensor &x, const hone_tensor &weight, const hone_tensor &y, const Epilogue &epilogue) {
#ifdef __AMX_TILE__
  if constexpr (__is_same(Format, Bf16Format)) {
    if (countRows(y) > kTileRows)
      return TileDenseLayer<Bf16Weights>(x, Bf16Weights(weight), y, epilogue).run();
    if (countRows(y) >= TileRowsKernel::kFewestRows) {
      TileRowsKernel kernel(x, weight, countRows(y));
      return PackedLayer<TileRowsKernel>(kernel, y, epilogue).run();
    }
  }
#endif
  DenseKernel<Format> kernel(x, weight, countRows(y));
  PackedLayer<DenseKernel<Format>>(kernel, y, epilogue).run();
}

/// Operands and attributes as kernels.h lists them.
template <typename Format> void runDense(const hone_tensor *operands, const int64_t *ints) {
  hone_tensor x = withRowAxis(operands[0]), y = withRowAxis(operands[5]);
  hone_tensor factor = withRowAxis(operands[3]), residual = withRowAxis(operands[4]);
  if (!isAbsent(y))
    runLayer<Format>(x, operands[1], y, {vectorOf(operands[2]), factor, residual, ints[0]});
}

} // namespace

void packedLinearF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runDense<F32Format>(operands, ints);
}

void packedLinearF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runDense<F16Format>(operands, ints);
}

void packedLinearBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runDense<Bf16Format>(operands, ints);
}

} // namespace hone::cpu::HONE_LEVEL_NAMESPACE
