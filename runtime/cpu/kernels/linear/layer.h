// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the packed linear kernels share: the rows of y in memory, the epilogue, and how the work is divided.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_LAYER_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_LAYER_H

#include "../../packing/layout.h"
#include "../matrix.h"
#include "../scratch.h"
#include "activation.h"

#include <omp.h>

namespace {

using hone::cpu::kPanelOutputs;

inline int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t roundUpTo(int64_t size, int64_t multiple) { return ceilDivide(size, multiple) * multiple; }

/// y = act(sums + bias) · factor + residual; every part may be absent.
struct Epilogue {
  Row bias;
  const hone_tensor &factor, &residual;
  int64_t activation;

  /// Columns [first, first + count) of a row whose sums are in y.
  void apply(float *y, int64_t row, int64_t first, int64_t count) const {
    if (bias.data)
      combine(y, {bias.data + first * bias.stride, bias.stride}, count, [](float a, float b) { return a + b; });
    activateRow(y, count, activation);
    if (!isAbsent(factor))
      combine(y, part(factor, row, first), count, [](float a, float b) { return a * b; });
    if (!isAbsent(residual))
      combine(y, part(residual, row, first), count, [](float a, float b) { return a + b; });
  }

private:
  static Row part(const hone_tensor &tensor, int64_t row, int64_t first) {
    Row whole = rowOf(tensor, row);
    return {whole.data + first * whole.stride, whole.stride};
  }

  template <typename Function> static void combine(float *y, Row other, int64_t count, Function function) {
    if (other.stride == 1) {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i)
        y[i] = function(y[i], other.data[i]);
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      y[i] = function(y[i], other[i]);
  }
};

/// The rows of y with columns next to each other: y itself where its strides allow, else memory that is copied at the end.
class OutputRows {
public:
  explicit OutputRows(const hone_tensor &y)
      : tensor(y), isDirect(lies(y)), rows(countRows(y)), columns(y.sizes[y.rank - 1]),
        copy(isDirect ? 0 : rows * columns), data(isDirect ? floats(y) : copy.data()),
        stride(isDirect ? strideOf(y) : columns) {}

  float *row(int64_t index) const { return data + index * stride; }
  int64_t rowStride() const { return stride; }

  /// To be called once all rows are written.
  void finish() const {
    if (isDirect)
      return;
    for (int64_t r = 0; r < rows; ++r) {
      Row to = rowOf(tensor, r);
      for (int64_t j = 0; j < columns; ++j)
        to[j] = data[r * columns + j];
    }
  }

private:
  static bool lies(const hone_tensor &y) {
    Matrix matrix;
    return collapseRows(y, matrix) && (matrix.columnStride == 1 || matrix.columns == 1);
  }
  static int64_t strideOf(const hone_tensor &y) {
    Matrix matrix;
    collapseRows(y, matrix);
    return matrix.rowStride;
  }

  const hone_tensor &tensor;
  bool isDirect;
  int64_t rows, columns;
  Scratch<float> copy;
  float *data;
  int64_t stride;
};

/// A rectangle of y: rows and panels.
struct Task {
  int64_t firstRow, rows, firstPanel, panels;
};

/// Divides y into tasks. The rectangle of a task is as large as its partial sums and a slice of both operands fit the
/// second-level cache, and smaller where threads would be idle; `unit` is a number of panels that stays together.
class TaskGrid {
public:
  TaskGrid(int64_t rows, int64_t panels, int64_t unit) : rows(rows), panels(panels) {
    constexpr int64_t mostRows = 512, mostPanels = 32, tasksPerThread = 4;
    rowsPerTask = ceilDivide(rows, ceilDivide(rows, mostRows));
    rowTasks = ceilDivide(rows, rowsPerTask);
    int64_t wanted = ceilDivide(panels * rowTasks, omp_get_max_threads() * tasksPerThread);
    panelsPerTask = roundUpTo(smaller(larger(wanted, 1), mostPanels), unit);
  }

  int64_t count() const { return rowTasks * ceilDivide(panels, panelsPerTask); }

  /// Tasks next to each other share weights.
  Task operator[](int64_t index) const {
    int64_t firstRow = index % rowTasks * rowsPerTask, firstPanel = index / rowTasks * panelsPerTask;
    return {firstRow, smaller(rowsPerTask, rows - firstRow), firstPanel, smaller(panelsPerTask, panels - firstPanel)};
  }

private:
  int64_t rows, panels, rowsPerTask, rowTasks, panelsPerTask;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_LAYER_H
