// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What host and device say to each other about a linear layer.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_ARGUMENTS_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_ARGUMENTS_H

#include "../row_view.h"

namespace hone::cuda {

constexpr int32_t kPanelOutputs = 16; // that have equally many outliers

/// Elements that are added to those of levels: the planes of #hone.dense_sparse. Slot s has one of each of 16 outputs that follow each
/// other, numbers 16 s … 16 s + 15; those of outputs 16 p … 16 p + 15 are slots starts[p] … starts[p + 1] - 1.
struct Outliers {
  const int32_t *starts;    // null: there are none
  const uint16_t *columns;  // which input
  const uint16_t *elements; // of f16
};

/// The one argument of every linear kernel: y = act(x · Wᵀ + bias) · factor + residual.
struct LinearArguments {
  static constexpr bool kMayHaveOutliers = true;

  RowView x, bias, factor, residual, y; // the bias is one row
  const char *weight, *scales;
  const uint8_t *zeros;   // null: the middle level
  Outliers outliers;      // beside levels
  const uint8_t *indices; // null, or which two of every four inputs a 2:4 weight has: #hone.nm
  int64_t indexStride;    // bytes from an output to the next
  int64_t weightStride;   // bytes from an output to the next
  int64_t zeroStride;     // the same of zero points
  int64_t rows, outputs, inputs;
  int32_t scaleType;  // hone_dtype
  int32_t groups;     // scales from an output to the next
  int32_t groupShift; // inputs that share a scale, as a power of two; 31: all
  int32_t isSigned;   // levels and zero points are
  int32_t activation;
  int32_t slices; // warps of a block that share the outputs and divide the inputs
  int32_t stride; // warps of all blocks that do
  float *parts; // where those blocks leave their sums, [blocks][rows][outputs]; null: one block has all, and finishes y

  /// Which row of x is the layer's row `row`, and which of factor, residual and y.
  HONE_HOST_DEVICE int64_t inputRow(int64_t row) const { return row; }
  HONE_HOST_DEVICE int64_t outputRow(int64_t row) const { return row; }
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_ARGUMENTS_H
