// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed weights of 8 and 4 bits by vector registers.

#include "../kernels.h"

#include "quantized_activations.h"
#include "quantized_block.h"

namespace hone::cpu::HONE_LEVEL_NAMESPACE {
namespace {

/// Inputs of a slice, a multiple of every chunk: its weights stay in the first-level cache while all rows of a task pass by.
constexpr int64_t kSliceInputs = 512;

template <typename Levels> class QuantizedLayer {
public:
  QuantizedLayer(const hone_tensor *operands, const int64_t *ints)
      : x(withRowAxis(operands[0])), factor(withRowAxis(operands[5])), residual(withRowAxis(operands[6])),
        target(withRowAxis(operands[7])), weight(static_cast<const uint8_t *>(operands[1].data)),
        steps(operands[1].sizes[1]), panels(operands[1].sizes[0]), outputs(target.sizes[target.rank - 1]),
        rows(countRows(target)), bits(ints[2]), chunk(chunkInputs(ints[1], bits)),
        scales(weightScales(operands[2], operands[3], ints[1])),
        epilogue{vectorOf(operands[4]), factor, residual, ints[0]} {}

  void run() const {
    if (isAbsent(target))
      return;
    OutputRows y(target);
    QuantizedActivations activations(x, rows, steps * Levels::kInputs, chunk, bits);
    TaskGrid tasks(rows, panels, kQuantizedPanels);
#pragma omp parallel for schedule(dynamic)
    for (int64_t index = 0; index < tasks.count(); ++index)
      runTask(tasks[index], activations, y);
    y.finish();
  }

private:
  static WeightScales weightScales(const hone_tensor &scales, const hone_tensor &zeros, int64_t group) {
    return {static_cast<const uint8_t *>(scales.data),
            isAbsent(zeros) ? nullptr : static_cast<const uint8_t *>(zeros.data), scales.dtype == HONE_F16,
            group > 0 ? kPanelOutputs : 0, scales.sizes[1] * kPanelOutputs};
  }

  int64_t mostRows() const { return kQuantizedSums / kQuantizedPanels / (bits == 16 ? kMostDigits : 1); }

  void runTask(const Task &task, const QuantizedActivations &activations, const OutputRows &y) const {
    int64_t slice = task.rows <= mostRows() ? larger(steps, 1) : kSliceInputs / Levels::kInputs;
    for (int64_t step = 0; step == 0 || step < steps; step += slice)
      for (int64_t panel = 0; panel < task.panels; panel += kQuantizedPanels)
        runPanels(task, task.firstPanel + panel, smaller(kQuantizedPanels, task.panels - panel), step,
                  smaller(slice, steps - step), activations, y);
    int64_t first = task.firstPanel * kPanelOutputs;
    for (int64_t r = task.firstRow; r < task.firstRow + task.rows; ++r)
      epilogue.apply(y.row(r) + first, r, first, smaller(task.panels * kPanelOutputs, outputs - first));
  }

  /// All rows of a task by one or two panels, blocks of nearly equal height.
  void runPanels(const Task &task, int64_t panel, int64_t width, int64_t step, int64_t count,
                 const QuantizedActivations &activations, const OutputRows &y) const {
    constexpr int64_t lineBytes = 64;
    int64_t chunkIndex = step * Levels::kInputs / chunk, panelBytes = steps * lineBytes;
    int64_t height = ceilDivide(task.rows, ceilDivide(task.rows, mostRows()));
    for (int64_t r = task.firstRow, end = r + task.rows; r < end; r += height) {
      QuantizedOperands operands = {weight + panel * panelBytes + step * lineBytes,
                                    panelBytes,
                                    chunk / Levels::kInputs,
                                    count,
                                    scales.from(chunkIndex, panel),
                                    activations.row(r) + step * Levels::kInputs,
                                    activations.stride,
                                    activations.planeStride(),
                                    activations.rowScales(r) + chunkIndex,
                                    activations.rowSums(r) + chunkIndex,
                                    activations.chunks,
                                    y.row(r) + panel * kPanelOutputs,
                                    y.rowStride(),
                                    outputs - panel * kPanelOutputs,
                                    step != 0};
      runRows(smaller(height, end - r), width, operands);
    }
  }

  void runRows(int64_t count, int64_t width, const QuantizedOperands &operands) const {
    if (bits == 16 && kMostDigits == 2)
      runDigits<kMostDigits>(count, width, operands);
    else
      runDigits<1>(count, width, operands);
  }

  template <int DIGITS> static void runDigits(int64_t count, int64_t width, const QuantizedOperands &operands) {
    constexpr int mostRows = kQuantizedSums / kQuantizedPanels / DIGITS;
    if (width == kQuantizedPanels)
      runBlock<QuantizedBlock<Levels, DIGITS>, mostRows, kQuantizedPanels>(count, operands);
    else
      runBlock<QuantizedBlock<Levels, DIGITS>, mostRows, 1>(count, operands);
  }

  hone_tensor x, factor, residual, target;
  const uint8_t *weight;
  int64_t steps, panels, outputs, rows, bits, chunk;
  WeightScales scales;
  Epilogue epilogue;
};

} // namespace

void packedLinearU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  QuantizedLayer<U8Levels>(operands, ints).run();
}

void packedLinearU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  QuantizedLayer<U4Levels>(operands, ints).run();
}

} // namespace hone::cpu::HONE_LEVEL_NAMESPACE
