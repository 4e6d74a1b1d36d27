// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes that compute the same whatever the order of their dimensions is.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_TRANSPOSERULES_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_TRANSPOSERULES_H

#include "OnnxMatch.h"

namespace hone::raising {

/// The permutation of a Transpose whose rank is known; nothing for anything else.
std::optional<SmallVector<int64_t>> getPermutation(Operation *op);

/// A node that computes the same over permuted dimensions: each axis that it names is the axis of that dimension then.
struct MovableNode {
  int64_t rank;                  // of all results
  SmallVector<unsigned> tensors; // numbers of the operands whose dimensions are permuted with the results'

  /// Nothing where `op` is no such node.
  static std::optional<MovableNode> get(Operation *op);

  /// The node over `operands`, those of `tensors` permuted: dimension k of `op` is dimension `axes[k]` of the new one.
  Operation *create(OpBuilder &b, Operation *op, SmallVector<Value> operands, ArrayRef<int64_t> axes) const;
};

/// Whether `value` is known before the program runs, and has at most one size other than 1 among its dimensions, at most `rank`.
bool isVectorWeight(Value value, int64_t rank);
/// Such a value of `axes.size()` dimensions, or of none but 1, in which dimension k is dimension `axes[k]`.
Value permuteWeight(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> axes);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_TRANSPOSERULES_H
