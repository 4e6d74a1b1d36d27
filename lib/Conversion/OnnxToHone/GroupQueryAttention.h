// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft.GroupQueryAttention as rotations, an extended cache and an attention.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_GROUPQUERYATTENTION_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_GROUPQUERYATTENTION_H

#include "OnnxMatch.h"

namespace hone::raising {

/// Where a session's state stands while a function is rewritten in order.
struct StateThread {
  Value state;
  Value positions; // i64 [B, S]: the position of each new token in its sequence, padding not counted
  Value padding;   // i64 [B]
};

/// Replaces a GroupQueryAttention. With `thread`, its past operands are views of slots, which are appended to; without,
/// they are tensors, which are concatenated. Fails with a remark, and changes nothing, where a form is not supported.
LogicalResult raiseGroupQueryAttention(Operation *op, SymbolicAnalysis &analysis, StateThread *thread);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_GROUPQUERYATTENTION_H
