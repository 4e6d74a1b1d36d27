// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts of decompositions that adjoints compute as well, and those that are made for adjoints.

#ifndef HONE_TRANSFORMS_DECOMPOSEDPARTS_H
#define HONE_TRANSFORMS_DECOMPOSEDPARTS_H

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/Loops.h"

#include "mlir/IR/PatternMatch.h"

namespace hone {

/// `tensor` with dimension `dim`, of Hq query heads, as two: `heads` KV heads, and the query heads that share each.
mlir::Value expandHeads(LocBuilder &builder, mlir::Value tensor, int64_t dim, mlir::OpFoldResult heads);

/// The logits `[B, Hk, G, Sq, Sk]` of an attention, minus infinity where a key is not visible, from the products of its queries and keys
/// of that shape.
mlir::Value buildAttentionLogits(LocBuilder &builder, AttentionOp op, mlir::Value products);

/// The logarithm of the sum of the exponentials of each row of `logits`.
mlir::Value buildLogSumExp(LocBuilder &builder, mlir::Value logits);

/// The f32 tensor `tensor` times `factor`.
mlir::Value buildScaled(LocBuilder &builder, mlir::Value tensor, float factor);

/// Replaces a block of experts by operations that have adjoints: a loop over experts, each of which multiplies the rows that chose it. Takes
/// the work of the chosen experts, and a comparison for each pair of choices.
void groupExperts(mlir::RewriterBase &rewriter, MoeOp op);

} // namespace hone

#endif // HONE_TRANSFORMS_DECOMPOSEDPARTS_H
