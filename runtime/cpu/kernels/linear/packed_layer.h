// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the packed linear kernels share: the rows of y in memory, the epilogue, and how the work is divided.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_PACKED_LAYER_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_PACKED_LAYER_H

#include "../../cache_size.h"
#include "../matrix.h"
#include "../scratch.h"
#include "../tasks.h"
#include "activation.h"
#include "columns.h"
#include "hone/cpu/packing/layout.h"
#include "region.h"

#include <omp.h>

namespace {

using hone::cpu::kPanelOutputs;

/// Up to this number of rows, as verification has, what a row gives is the same as alone, bit by bit: formats that GEMM adds up in
/// another order stay with GEMV.
constexpr int64_t kIndependentRows = 64;

inline int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t roundUpTo(int64_t size, int64_t multiple) { return ceilDivide(size, multiple) * multiple; }

/// Whether rows of a tensor lie next to each other, and not their elements; then `matrix` is it.
inline bool isColumnMajor(const hone_tensor &tensor, Matrix &matrix) {
  return tensor.rank > 1 && tensor.strides[tensor.rank - 1] != 1 && collapseRows(tensor, matrix) && matrix.rows > 1 &&
         matrix.rowStride == 1;
}

/// The rows of an operand that the epilogue combines with those of y.
class OtherRows {
public:
  explicit OtherRows(const hone_tensor &tensor)
      : tensor(tensor), isThere(!isAbsent(tensor)), isMatrix(isThere && collapseRows(tensor, matrix)) {}

  explicit operator bool() const { return isThere; }

  /// Row `row` from column `first` on; without data where the operand is absent.
  Row at(int64_t row, int64_t first) const {
    if (!isThere)
      return {nullptr, 0};
    if (isMatrix)
      return {&matrix.at(row, first), matrix.columnStride};
    Row whole = rowOf(tensor, row);
    return {whole.data + first * whole.stride, whole.stride};
  }

  /// Whether rows are evenly spaced, with columns next to each other; absent ones are, at null.
  bool isRowMajor() const { return !isThere || (isMatrix && matrix.columnStride == 1); }
  const float *data() const { return isThere ? matrix.data : nullptr; }
  int64_t rowStride() const { return isThere ? matrix.rowStride : 0; }

private:
  const hone_tensor &tensor;
  Matrix matrix;
  bool isThere, isMatrix;
};

/// What a row of sums becomes, from some column on: act(sums + bias) · factor + residual. What has no data is absent.
struct RowEpilogue {
  Row bias, factor, residual;

  /// Sixteen columns from `column` on, of which the first `count` count.
  template <int64_t ACTIVATION> Vector apply(Vector sums, int64_t column, int64_t count) const {
    if (bias.data)
      sums += columnsOf(bias, column, count);
    sums = activate<ACTIVATION>(sums);
    if (factor.data)
      sums *= columnsOf(factor, column, count);
    if (residual.data)
      sums += columnsOf(residual, column, count);
    return sums;
  }

  /// Prefetches sixteen columns from `column` on of what differs from row to row.
  void prefetch(int64_t column) const {
    if (factor.data)
      __builtin_prefetch(factor.data + column * factor.stride);
    if (residual.data)
      __builtin_prefetch(residual.data + column * residual.stride);
  }

private:
  static Vector columnsOf(Row from, int64_t column, int64_t count) {
    if (from.stride == 1)
      return loadColumns(from.data + column, count);
    float columns[kLanes] = {};
    for (int64_t i = 0; i < smaller(kLanes, count); ++i)
      columns[i] = from[column + i];
    return load(columns);
  }
};

/// The same for any row and whole vectors, where all operands have their columns next to each other.
struct WholeEpilogue {
  const float *bias, *factor, *residual;
  int64_t factorStride, residualStride;

  template <int64_t ACTIVATION> Vector apply(Vector sums, int64_t row, int64_t column, int64_t) const {
    if (bias)
      sums += load(bias + column);
    sums = activate<ACTIVATION>(sums);
    if (factor)
      sums *= load(factor + row * factorStride + column);
    if (residual)
      sums += load(residual + row * residualStride + column);
    return sums;
  }
  static Vector read(const float *from, int64_t) { return load(from); }
  static void write(float *to, Vector values, int64_t) { store(to, values); }
};

class Epilogue;

/// The same where they have not, or the last vector is not whole: its first `count` columns count.
struct PartEpilogue {
  const Epilogue &epilogue;

  template <int64_t ACTIVATION> Vector apply(Vector sums, int64_t row, int64_t column, int64_t count) const;
  static Vector read(const float *from, int64_t count) { return loadColumns(from, count); }
  static void write(float *to, Vector values, int64_t count) { storeColumns(to, values, count); }
};

/// y = act(sums + bias) · factor + residual; every part may be absent.
class Epilogue {
public:
  Epilogue(Row bias, const hone_tensor &factor, const hone_tensor &residual, int64_t activation)
      : bias(bias), factor(factor), residual(residual), activation(activation) {}

  int64_t activationNumber() const { return activation; }
  bool readsRows() const { return factor || residual; }
  bool isIdentity() const { return !bias.data && !readsRows() && activation == kIdentity; }

  /// Row `row` from column `first` on.
  RowEpilogue at(int64_t row, int64_t first) const {
    Row biasFrom = bias.data ? Row{bias.data + first * bias.stride, bias.stride} : bias;
    return {biasFrom, factor.at(row, first), residual.at(row, first)};
  }

  /// Calls `body` with a WholeEpilogue or a PartEpilogue, for some columns of which `width` count.
  template <typename Body> void withColumns(int64_t width, const Body &body) const {
    if (width % kLanes == 0 && (!bias.data || bias.stride == 1) && factor.isRowMajor() && residual.isRowMajor())
      body(WholeEpilogue{bias.data, factor.data(), residual.data(), factor.rowStride(), residual.rowStride()});
    else
      body(PartEpilogue{*this});
  }

  /// Finishes `rows` rows from `row` on, columns [first, first + count), whose sums are y[rows][stride].
  void apply(float *y, int64_t stride, int64_t row, int64_t rows, int64_t first, int64_t count) const {
    if (isIdentity())
      return;
    withActivation(activation, [&](auto known) {
      withColumns(count, [&](const auto &of) {
        for (int64_t r = 0; r < rows; ++r) {
          if (r + kPrefetchedRows < rows)
            prefetch(row + r + kPrefetchedRows, first, count);
          float *to = y + r * stride;
          for (int64_t i = 0; i < count; i += kLanes)
            of.write(to + i,
                     of.template apply<known.kNumber>(of.read(to + i, count - i), row + r, first + i, count - i),
                     count - i);
        }
      });
    });
  }

private:
  /// Rows are short, and the processor prefetches no other row by itself.
  static constexpr int64_t kPrefetchedRows = 2;

  void prefetch(int64_t row, int64_t first, int64_t count) const {
    RowEpilogue of = at(row, first);
    for (int64_t i = 0; i < count; i += kLanes)
      of.prefetch(i);
  }

  Row bias;
  OtherRows factor, residual;
  int64_t activation;
};

template <int64_t ACTIVATION>
Vector PartEpilogue::apply(Vector sums, int64_t row, int64_t column, int64_t count) const {
  return epilogue.at(row, column).apply<ACTIVATION>(sums, 0, count);
}

/// The rows of y with columns next to each other: y itself where its strides allow, else memory that is copied at the
/// end.
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

/// Divides y into tasks. `height` rows and `unit` panels stay together. The rectangle of a task is as large as its
/// partial sums and a slice of both operands fit the L2 cache, and smaller where threads would be idle; one block of
/// rows reads weights once, in runs as long as can be. Tasks have the same number of units, or one more.
class TaskGrid {
public:
  TaskGrid(int64_t rows, int64_t height, int64_t panels, int64_t unit)
      : rows(rows), panels(panels), unit(unit), units(ceilDivide(panels, unit)) {
    constexpr int64_t mostPanels = 16;
    // Of partial sums and of a slice of x a row has 1 KiB each; both together are half of the L2 cache.
    const int64_t mostRows = smaller(larger(hone::cpu::l2CacheBytes() / 4096, 256), 512);
    int64_t threads = omp_get_max_threads(), tasks = threads == 1 ? 1 : 4 * threads;
    rowsPerTask = roundUpTo(ceilDivide(rows, ceilDivide(rows, mostRows)), height);
    rowTasks = ceilDivide(rows, rowsPerTask);
    int64_t wanted = ceilDivide(tasks, rowTasks);
    if (rows > height)
      wanted = larger(wanted, ceilDivide(panels, mostPanels));
    panelTasks = smaller(wanted, units);
  }

  int64_t count() const { return rowTasks * panelTasks; }

  /// Tasks next to each other share weights.
  Task operator[](int64_t index) const {
    int64_t firstRow = index % rowTasks * rowsPerTask, panel = firstPanel(index / rowTasks);
    return {firstRow, smaller(rowsPerTask, rows - firstRow), panel, firstPanel(index / rowTasks + 1) - panel};
  }

private:
  int64_t firstPanel(int64_t task) const { return smaller(task * units / panelTasks * unit, panels); }

  int64_t rows, panels, unit, units, rowsPerTask, rowTasks, panelTasks;
};

/// Part of a task of `taskRows` rows that is multiplied at once: `width` panels, `panelStride` panels from each to the
/// next, and steps of their inputs.
struct Slice {
  int64_t taskRows, panel, width, panelStride, step, steps;
};

/// Runs a packed layer. A kernel says how many `steps` and `panels` its weights have, how many rows its blocks have at
/// most (`blockRows`), how many steps a slice has for so many rows (`sliceSteps`), and how many panels (`width`, a
/// power of two). Its `Worker`, one a thread, is told `select(slice)` and then `multiply(row, rows, y, y's stride,
/// columns)` for blocks of rows: the first slice of inputs writes to y, the others add to it.
template <typename Kernel> class PackedLayer {
public:
  PackedLayer(const Kernel &kernel, const hone_tensor &target, const Epilogue &epilogue)
      : kernel(kernel), epilogue(epilogue), y(target), outputs(target.sizes[target.rank - 1]),
        tasks(countRows(target), kernel.blockHeight(countRows(target)), kernel.panels,
              kernel.width(countRows(target))) {}

  void run() const {
    Tasks left(tasks.count());
    runRegion([&] {
      typename Kernel::Worker worker(kernel);
      for (int64_t index; left.take(index);)
        runTask(tasks[index], worker);
    });
    y.finish();
  }

private:
  /// GEMV (small M) reads each panel from its first input to its last; GEMM (large M) keeps a K-slice of the weights in
  /// the cache. GEMV is memory-bound, and a core reads faster from several streams at once: the panels of a slice are
  /// spread over the task.
  void runTask(const Task &task, typename Kernel::Worker &worker) const {
    bool isFew = task.rows <= kernel.blockRows();
    int64_t width = kernel.width(task.rows);
    while (width > task.panels)
      width /= 2;
    int64_t groups = task.panels / width, units = groups + task.panels % width; // those beyond the groups are one panel
    int64_t steps = larger(kernel.sliceSteps(task.rows), 1), slices = larger(ceilDivide(kernel.steps, steps), 1);
    for (int64_t index = 0; index < slices * units; ++index) {
      int64_t slice = isFew ? index % slices : index / units, unit = isFew ? index / slices : index % units;
      bool isGroup = unit < groups;
      int64_t panel = isGroup ? unit * (isFew ? 1 : width) : groups * (width - 1) + unit, step = slice * steps;
      runSlice(task,
               {task.rows, task.firstPanel + panel, isGroup ? width : 1, isFew ? groups : 1, step,
                smaller(steps, kernel.steps - step)},
               worker);
    }
    int64_t first = task.firstPanel * kPanelOutputs;
    epilogue.apply(y.row(task.firstRow) + first, y.rowStride(), task.firstRow, task.rows, first,
                   smaller(task.panels * kPanelOutputs, outputs - first));
  }

  /// All rows of a task, in blocks of nearly equal height.
  void runSlice(const Task &task, const Slice &slice, typename Kernel::Worker &worker) const {
    worker.select(slice);
    int64_t height = kernel.blockHeight(task.rows), first = slice.panel * kPanelOutputs;
    for (int64_t r = task.firstRow, end = r + task.rows; r < end; r += height)
      worker.multiply(r, smaller(height, end - r), y.row(r) + first, y.rowStride(), outputs - first);
  }

  const Kernel &kernel;
  const Epilogue &epilogue;
  OutputRows y;
  int64_t outputs;
  TaskGrid tasks;
};

/// The height of blocks that divide `rows` evenly, `most` at most.
inline int64_t evenHeight(int64_t rows, int64_t most) { return ceilDivide(rows, ceilDivide(rows, most)); }

/// An odd number of lines of 64 bytes, so that the rows of a block fall into different sets of the cache.
inline int64_t oddLineBytes(int64_t bytes) { return (ceilDivide(bytes, 64) | 1) * 64; }

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_PACKED_LAYER_H
