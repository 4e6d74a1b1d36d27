// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the attention operators of ONNX and of com.microsoft share: heads, the scores and their softmax, rotary tables.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_ATTENTIONCORE_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_ATTENTIONCORE_H

#include "Formula.h"
#include "Loops.h"

#include "hone/Dialect/Hone/HoneOps.h"

namespace hone::lowering {

/// Query `[B, Hq, Sq, D]`, key `[B, Hk, Sk, D]` and value `[B, Hk, Sk, Dv]` of one type, in which all is computed.
struct AttentionInputs {
  Value query, key, value;
  Value scale;        // a scalar
  double softcap = 0; // 0: none
  /// One logit `[Hq]` a head that takes part in the softmax without a value, or null.
  Value sinks;
};

/// The steps from query and key to the result; each `[B, Hq, Sq, Sk]`, the result `[B, Hq, Sq, Dv]`.
struct AttentionSteps {
  Value scores, capped, masked, probabilities, result;
};

/// From a capped score and the indices (b, h, i, j): the logit; minus infinity where query i does not see key j.
using MaskBody = llvm::function_ref<Number(Number score, ValueRange at)>;

/// Softmax attention; query head h reads key head h / (Hq / Hk), and a query that sees no key gives 0.
FailureOr<AttentionSteps> attend(Node &node, const AttentionInputs &inputs, MaskBody mask);

/// The first of these steps, with the checks of all sizes that products do not compare.
FailureOr<Value> computeScores(Node &node, const AttentionInputs &inputs);
/// Product of `lhs[B, Hq, S, K]` with `rhs[B, Hk, K, N]`: the query heads of one key head are the rows of one matrix.
FailureOr<Value> multiplyByHead(Node &node, Value lhs, Value rhs);

/// `[B, S, H * D]` as `[B, H, S, D]`, and back.
Value splitHeads(Node &node, Value tensor, Size heads);
Value mergeHeads(Node &node, Value tensor);

/// attribute `name`, or 1 / sqrt(head size) where it is absent or 0, as a scalar of type `type`.
Value getScale(Node &node, StringRef name, Size headSize, Type type);

/// Minus infinity.
inline Number never(Number like) { return like.with(-std::numeric_limits<double>::infinity()); }

/// Reads a tensor that is broadcast from the right to the loop indices; dimensions that may be 1 at run time are asked.
class BroadcastReader {
public:
  BroadcastReader(Node &node, Value tensor, ArrayRef<Size> sizes);
  Value read(Builder &b, ValueRange at) const;

private:
  Value tensor;
  SmallVector<bool> isFixed; // per dimension: index 0
  SmallVector<Value> isOne;  // per dimension: size is 1, or null if it is the loop's
};

/// Failure, or a check at run time, where the operands of an attention do not have the sizes that it relates to each other. Without a
/// check a kernel would read rows that are not there.
LogicalResult checkAttention(Node &node, AttentionOp op);

/// Failure, or a check at run time, where the sizes of `x[B, H, S, D]` and its tables `[B or 1, S, R / 2]` do not fit each other.
LogicalResult checkRotation(Node &node, Value x, Value cos, Value sin);

/// Position of row s of sequence b, as an index.
using PositionBody = llvm::function_ref<Value(Builder &, Value b, Value s)>;

/// Rotates `x[B, H, S, D]` by rows of cos and sin `[positions, R / 2]`.
Value rotate(Node &node, Value x, Value cos, Value sin, bool isInterleaved, PositionBody position);
/// The same by tables `[B or 1, S, R / 2]`.
Value rotateByTables(Node &node, Value x, Value cos, Value sin, bool isInterleaved);

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_ATTENTIONCORE_H
