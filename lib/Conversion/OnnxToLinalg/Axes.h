// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folding a tensor over axes that may be known only at run time.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_AXES_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_AXES_H

#include "Lowering.h"

namespace hone::lowering {

/// The axes of an operator: a list known at compile time, or for each dimension an i1 that says whether it is one.
struct Axes {
  bool isKnown() const { return flags.empty(); }

  SmallVector<int64_t> known;
  SmallVector<Value> flags;
  /// How many there are; run-time axes are expected to differ from each other.
  int64_t count = 0;
};

/// Axes from the attribute `axes` of older opsets or input 1 of newer ones. Without any: none if `noop_with_empty_axes`,
/// else all.
FailureOr<Axes> getAxes(Node &node);

/// Folds `tensor` over the axes from `initial`; they stay with size 1 if `keep`.
Value reduceOver(Node &node, Value tensor, const Axes &axes, bool keep, Value initial, Node::ReduceBody body);

/// How many elements of `tensor` fold into one.
Size getReducedCount(Node &node, Value tensor, const Axes &axes);

/// Along `axis`, which goes away: the position (i64) of the largest or smallest element, the first or the last of equal ones.
Value findExtreme(Node &node, Value tensor, int64_t axis, bool largest, bool last, bool isUnsigned);

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_AXES_H
