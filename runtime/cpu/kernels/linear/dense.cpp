// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed f32, f16 and bf16 weights.

#include "../kernels.h"

#include "dense_activations.h"
#include "dense_block.h"
#include "layer.h"
#include "tile_dense.h"

namespace hone::cpu::HONE_LEVEL_NAMESPACE {
namespace {

/// Products by vector registers.
template <typename Format> class DenseKernel {
public:
  static constexpr int64_t kWidth = kDensePanels;

  DenseKernel(const hone_tensor &x, const hone_tensor &weight, int64_t rows)
      : weight(static_cast<const uint8_t *>(weight.data)), steps(weight.sizes[1]), panels(weight.sizes[0]),
        activations(x, rows, steps * Format::kInputs, kDenseRows, 0) {}

  static int64_t blockRows() { return kDenseRows; }
  static int64_t blockHeight(int64_t rows) { return evenHeight(rows, kDenseRows); }
  int64_t sliceSteps(int64_t rows) const { return rows <= kDenseRows ? steps : kSliceInputs / Format::kInputs; }

  class Worker {
  public:
    explicit Worker(const DenseKernel &kernel) : kernel(kernel) {}

    void select(const Slice &next) { slice = next; }

    void multiply(int64_t row, int64_t rows, float *y, int64_t yStride, int64_t columns) const {
      int64_t panelBytes = kernel.steps * Format::kBytes;
      DenseOperands<Format> operands = {kernel.weight + slice.panel * panelBytes + slice.step * Format::kBytes,
                                        panelBytes,
                                        slice.steps,
                                        kernel.activations.row(row) + slice.step * Format::kInputs,
                                        kernel.activations.rowStride(),
                                        y,
                                        yStride,
                                        columns,
                                        slice.step != 0};
      if (slice.width == kWidth)
        runBlock<DenseBlock<Format>, kDenseRows, kDensePanels>(rows, operands);
      else
        runBlock<DenseBlock<Format>, kDenseRows, 1>(rows, operands);
    }

  private:
    const DenseKernel &kernel;
    Slice slice = {};
  };

  /// Two panels of a slice stay in the first-level cache while all rows of a task pass by.
  static constexpr int64_t kSliceInputs = 256;

  const uint8_t *weight;
  int64_t steps, panels;
  DenseActivations<Format> activations;
};

template <typename Format>
void runLayer(const hone_tensor &x, const hone_tensor &weight, const hone_tensor &y, const Epilogue &epilogue) {
#ifdef __AMX_TILE__
  if constexpr (__is_same(Format, Bf16Format))
    return TileDenseLayer(x, weight, y, epilogue).run();
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
