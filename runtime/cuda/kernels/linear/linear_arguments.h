// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel arguments of a linear layer.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_ARGUMENTS_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_ARGUMENTS_H

#include "../row_view.h"

namespace hone::cuda {

constexpr int32_t kPanelOutputs = 16; // with equally many outliers

/// Outliers of quantized weights: the planes of #hone.dense_sparse. Slot s has one element of each of 16 consecutive
/// outputs, elements 16 s … 16 s + 15; those of outputs 16 p … 16 p + 15 are slots starts[p] … starts[p + 1] - 1.
struct Outliers {
  const int32_t *starts;    // null: none
  const uint16_t *columns;  // the input of each
  const uint16_t *elements; // of f16
};

/// The argument of every linear kernel: y = act(x · Wᵀ + bias) · factor + residual.
struct LinearArguments {
  static constexpr bool kMayHaveOutliers = true;

  RowView x, bias, factor, residual, y; // the bias is one row
  const char *weight, *scales;
  const uint8_t *zeros;   // null: the middle of the range
  Outliers outliers;      // of quantized weights
  const uint8_t *indices; // of a 2:4 weight, as in #hone.nm; null: dense
  int64_t indexStride;    // bytes between outputs
  int64_t weightStride;   // bytes between outputs
  int64_t zeroStride;     // bytes between zero points of outputs
  int64_t rows, outputs, inputs;
  int32_t scaleType;  // hone_dtype
  int32_t groups;     // scales between outputs
  int32_t groupShift; // log2 of the group size; 31: one group
  int32_t isSigned;   // quantized values and zero points are
  int32_t isConstant; // nothing writes the weight while the call runs (KernelDevice::isConstant)
  int32_t activation;
  int32_t slices;     // K-slices: warps of a block with the same outputs
  int32_t stride;     // K-slices of all blocks
  float *partialSums; // of split-K, [blocks][rows][outputs]; null: a block has all inputs and stores y

  /// The row of x for the layer's row `row`, and that of factor, residual and y.
  HONE_HOST_DEVICE int64_t inputRow(int64_t row) const { return row; }
  HONE_HOST_DEVICE int64_t outputRow(int64_t row) const { return row; }
};

/// The RMSNorm of the x of layers.
struct InputNorm {
  RowView weight; // one row; absent: x is multiplied as it is
  float epsilon;
  int32_t unitOffset;
};

/// Layers of one x that one launch computes, with weights of one format and of the same strides: siblings, or the gate
/// and the up layer of y = act(x · Gateᵀ + bias) · (x · Upᵀ + bias), of which the first has y.
struct LinearLayers {
  static constexpr int32_t kMost = 3;

  LinearArguments layers[kMost];
  int32_t ends[kMost]; // of siblings: the number of the first block after those of the layer

  /// The sibling that a block computes, and the number of the block among those of it.
  HONE_HOST_DEVICE int32_t layerOf(int32_t block) const { return (block >= ends[0]) + (block >= ends[1]); }
  HONE_HOST_DEVICE int32_t blockOf(int32_t block) const {
    return block - (block >= ends[1] ? ends[1] : block >= ends[0] ? ends[0] : 0);
  }
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_LINEAR_ARGUMENTS_H
