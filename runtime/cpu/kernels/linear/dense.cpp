// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed f32, f16 and bf16 weights by vector registers.

#include "../kernels.h"

#include "dense_block.h"
#include "layer.h"

namespace hone::cpu::HONE_LEVEL_NAMESPACE {
namespace {

/// Inputs of a slice: two panels of a slice stay in the first-level cache while all rows of a task pass by.
constexpr int64_t kSliceInputs = 256;
/// Up to so many rows pass by at once, so that nothing is gained by slices.
constexpr int64_t kFewRows = kDenseRows;

/// x as the format takes it, rows dense and filled up to whole steps.
template <typename Format> class DenseActivations {
public:
  using Element = typename Format::Activation;

  DenseActivations(const hone_tensor &x, int64_t rows, int64_t inputs)
      : padded(inputs), stride(rowStride(inputs)), direct(directRows(x, inputs, stride)),
        copy(direct ? 0 : rows * stride) {
    if (direct)
      return;
    int64_t given = x.sizes[x.rank - 1];
#pragma omp parallel for schedule(static) if (rows * inputs > 1 << 15)
    for (int64_t r = 0; r < rows; ++r)
      convertRow(rowOf(x, r), given, copy.data() + r * stride);
  }

  const Element *row(int64_t index) const { return (direct ? direct : copy.data()) + index * stride; }
  int64_t rowStride() const { return stride; }

private:
  /// An odd number of lines, so that the rows of a block fall into different sets of the cache.
  static int64_t rowStride(int64_t inputs) {
    constexpr int64_t line = 64 / sizeof(Element);
    return (ceilDivide(inputs, line) | 1) * line;
  }

  /// x itself where it has the right elements in the right places and is short enough for any stride to do.
  static const Element *directRows(const hone_tensor &x, int64_t inputs, int64_t &stride) {
    if constexpr (sizeof(Element) == sizeof(float)) {
      Matrix matrix;
      if (collapseRows(x, matrix) && matrix.rows <= kFewRows && matrix.columns == inputs &&
          (matrix.columnStride == 1 || inputs == 1)) {
        stride = matrix.rowStride;
        return matrix.data;
      }
    }
    return nullptr;
  }

  void convertRow(Row from, int64_t given, Element *to) const {
    if (from.stride == 1)
      for (int64_t k = 0; k < given; ++k)
        to[k] = Format::convert(from.data[k]);
    else
      for (int64_t k = 0; k < given; ++k)
        to[k] = Format::convert(from[k]);
    for (int64_t k = given; k < padded; ++k)
      to[k] = 0;
  }

  int64_t padded, stride;
  const Element *direct;
  Scratch<Element> copy;
};

template <typename Format> class DenseLayer {
public:
  DenseLayer(const hone_tensor *operands, const int64_t *ints)
      : x(withRowAxis(operands[0])), factor(withRowAxis(operands[3])), residual(withRowAxis(operands[4])),
        target(withRowAxis(operands[5])), weight(static_cast<const uint8_t *>(operands[1].data)),
        steps(operands[1].sizes[1]), panels(operands[1].sizes[0]), outputs(target.sizes[target.rank - 1]),
        rows(countRows(target)), epilogue{vectorOf(operands[2]), factor, residual, ints[0]} {}

  void run() const {
    if (isAbsent(target))
      return;
    OutputRows y(target);
    DenseActivations<Format> activations(x, rows, steps * Format::kInputs);
    TaskGrid tasks(rows, panels, kDensePanels);
#pragma omp parallel for schedule(dynamic)
    for (int64_t index = 0; index < tasks.count(); ++index)
      runTask(tasks[index], activations, y);
    y.finish();
  }

private:
  void runTask(const Task &task, const DenseActivations<Format> &activations, const OutputRows &y) const {
    int64_t slice = task.rows <= kFewRows ? larger(steps, 1) : kSliceInputs / Format::kInputs;
    for (int64_t step = 0; step == 0 || step < steps; step += slice)
      for (int64_t panel = 0; panel < task.panels; panel += kDensePanels)
        runPanels(task, task.firstPanel + panel, smaller(kDensePanels, task.panels - panel), step,
                  smaller(slice, steps - step), activations, y);
    int64_t first = task.firstPanel * kPanelOutputs;
    for (int64_t r = task.firstRow; r < task.firstRow + task.rows; ++r)
      epilogue.apply(y.row(r) + first, r, first, smaller(task.panels * kPanelOutputs, outputs - first));
  }

  /// All rows of a task by one or two panels, blocks of nearly equal height.
  void runPanels(const Task &task, int64_t panel, int64_t width, int64_t step, int64_t count,
                 const DenseActivations<Format> &activations, const OutputRows &y) const {
    int64_t panelBytes = steps * Format::kBytes;
    int64_t height = ceilDivide(task.rows, ceilDivide(task.rows, kDenseRows));
    for (int64_t r = task.firstRow, end = r + task.rows; r < end; r += height) {
      DenseOperands<Format> operands = {weight + panel * panelBytes + step * Format::kBytes,
                                        panelBytes,
                                        count,
                                        activations.row(r) + step * Format::kInputs,
                                        activations.rowStride(),
                                        y.row(r) + panel * kPanelOutputs,
                                        y.rowStride(),
                                        outputs - panel * kPanelOutputs,
                                        step != 0};
      if (width == kDensePanels)
        runBlock<DenseBlock<Format>, kDenseRows, kDensePanels>(smaller(height, end - r), operands);
      else
        runBlock<DenseBlock<Format>, kDenseRows, 1>(smaller(height, end - r), operands);
    }
  }

  hone_tensor x, factor, residual, target;
  const uint8_t *weight;
  int64_t steps, panels, outputs, rows;
  Epilogue epilogue;
};

} // namespace

void packedLinearF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  DenseLayer<F32Format>(operands, ints).run();
}

void packedLinearF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  DenseLayer<F16Format>(operands, ints).run();
}

void packedLinearBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  DenseLayer<Bf16Format>(operands, ints).run();
}

} // namespace hone::cpu::HONE_LEVEL_NAMESPACE
