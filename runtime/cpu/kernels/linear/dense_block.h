// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floating-point weights: rows of y whose sums stay in registers while a slice of the inputs is multiplied.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_BLOCK_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_BLOCK_H

#include "columns.h"
#include "dense_formats.h"

namespace {

/// What the steps of a block prefetch: each a line from `from` on in every panel, `stepBytes` after that of the step
/// before, and `stagger` farther in each panel.
struct WeightPrefetch {
  const uint8_t *from;
  int64_t stepBytes, stagger;
};

/// Operands of a block; panelBytes and panelColumns are the distance of two panels, x has the words of all rows of the
/// block.
struct DenseOperands {
  const uint8_t *weight;
  int64_t panelBytes, panelColumns, steps;
  WeightPrefetch prefetch;
  const float *x;
  float *y;
  int64_t yStride, columns;
  bool accumulate;
};

/// PREFETCH_BYTES is `prefetch.stepBytes` where that is known; 0 where it is not.
template <typename Format, int64_t PREFETCH_BYTES = 0> struct DenseBlock {
  /// y[ROWS, columns] = x[ROWS, steps] · weight, plus what y held where `accumulate`.
  template <int ROWS, int PANELS> static void run(const DenseOperands &o) {
    Vector sums[ROWS][PANELS];
    for (int r = 0; r < ROWS; ++r)
      for (int p = 0; p < PANELS; ++p)
        sums[r][p] =
            o.accumulate ? loadColumns(o.y + r * o.yStride + p * o.panelColumns, o.columns - p * o.panelColumns) : 0;
    const uint8_t *weight = o.weight, *prefetched = o.prefetch.from;
    const float *x = o.x;
    // Unrolled: threads of one core (SMT) share its decoder, and counters and addresses would take much of it.
#pragma clang loop unroll_count(4)
    for (int64_t step = 0; step < o.steps; ++step) {
      typename Format::Weights weights[PANELS];
      for (int p = 0; p < PANELS; ++p) {
        weights[p] = Format::load(weight + p * o.panelBytes);
        prefetchL2(prefetched + p * (o.panelBytes + o.prefetch.stagger));
        prefetchL1(weight + p * o.panelBytes + kWeightsL1Distance);
      }
      for (int r = 0; r < ROWS; ++r)
        for (int p = 0; p < PANELS; ++p)
          Format::template add<ROWS>(sums[r][p], weights[p], x + r);
      weight += Format::kBytes;
      prefetched += PREFETCH_BYTES ? PREFETCH_BYTES : o.prefetch.stepBytes;
      x += ROWS * Format::kStepWords;
    }
    for (int r = 0; r < ROWS; ++r)
      for (int p = 0; p < PANELS; ++p)
        storeColumns(o.y + r * o.yStride + p * o.panelColumns, sums[r][p], o.columns - p * o.panelColumns);
  }
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_BLOCK_H
