// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sliding window that convolutions and poolings share: its attributes, its padding and its result sizes.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_WINDOW_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_WINDOW_H

#include "Loops.h"

namespace hone::lowering {

/// A window over the spatial dimensions of a tensor `[N, C, spatial...]`; all lists have one element a spatial dimension.
struct Window {
  SmallVector<Size> kernel;
  SmallVector<int64_t> strides, dilations;
  /// Padding that belongs to the operator.
  SmallVector<Size> low, high;
  /// Result sizes.
  SmallVector<Size> output;

  size_t rank() const { return kernel.size(); }
  /// Elements from a window's first to its last.
  Size extent(Node &node, size_t dim) const;
  /// `x` with the padding, and with what the last window reaches beyond it, filled with `scalar`.
  Value pad(Node &node, Value x, Value scalar) const;
  /// Index expressions of the padded tensor: output loops from `first`, kernel loops from `kernelFirst`.
  SmallVector<mlir::AffineExpr> positions(Node &node, unsigned first, unsigned kernelFirst) const;
  bool isPadded() const;
  /// The result sizes that only calls know.
  SmallVector<Value> getOpenSizes(Node &node) const;
};

/// Strides, dilations and auto_pad, pads and ceil_mode of the node for input `x` and a kernel.
FailureOr<Window> getWindow(Node &node, Value x, ArrayRef<Size> kernel);

/// Sizes as numbers; nothing where one is not known.
std::optional<SmallVector<int64_t>> getConstants(ArrayRef<Size> sizes);

/// Failure, or a check at run time, where a kernel that reaches over `extent` elements of a padded dimension has less than no windows. None
/// at all is an empty result, which strides allow where less than one of them is missing.
LogicalResult requireWindows(Node &node, Size padded, Size extent, Size windows);

/// One positive integer a spatial dimension; all 1 if the node does not say.
FailureOr<SmallVector<int64_t>> getPerDimension(Node &node, StringRef attribute, size_t rank, int64_t otherwise);

/// Attribute kernel_shape as sizes.
FailureOr<SmallVector<Size>> getKernelShape(Node &node, size_t rank);

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_WINDOW_H
