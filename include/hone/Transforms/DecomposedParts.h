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

/// What logits are made of, and values, of an attention or its gradient.
template <typename Op> AttentionParts getParts(Op op) {
  AttentionParts parts;
  parts.query = op.getQuery(), parts.key = op.getKey(), parts.value = op.getValue();
  parts.pattern = op.getPattern();
  parts.patternOperands = llvm::to_vector(op.getPatternOperands());
  parts.scale = op.getScale().convertToFloat();
  if (std::optional<llvm::APFloat> softcap = op.getSoftcap())
    parts.softcap = softcap->convertToFloat();
  parts.bias = op.getBias(), parts.alibi = op.getAlibi();
  parts.keyBegin = op.getKeyBegin(), parts.keyEnd = op.getKeyEnd();
  parts.lags = op.getLags(), parts.keyPositions = op.getKeyPositions();
  return parts;
}

/// The logits `[B, Hk, G, Sq, Sk]` of an attention, minus infinity where a key is not visible, from the products of its queries and keys
/// of that shape.
mlir::Value buildAttentionLogits(LocBuilder &builder, const AttentionParts &parts, mlir::Value products);

/// What an attention_gradient gives, by products of batches of matrices `[B, Hk, rows, columns]`, which `multiply` makes of two of them: the
/// query heads of a KV head and their positions are the rows of one matrix.
using MultiplyMatrices = llvm::function_ref<mlir::Value(LocBuilder &, mlir::Value, mlir::Value)>;
llvm::SmallVector<mlir::Value> buildAttentionGradient(LocBuilder &builder, AttentionGradientOp op,
                                                      MultiplyMatrices multiply);

/// `tensor` with its last two dimensions exchanged. (A B)ᵀ of matrices becomes Bᵀ Aᵀ, whose kernels read transposed operands where they lie.
mlir::Value transposeLast(LocBuilder &builder, mlir::Value tensor);

/// The logarithm of the sum of the exponentials of each row of `logits`.
mlir::Value buildLogSumExp(LocBuilder &builder, mlir::Value logits);

/// The f32 tensor `tensor` times `factor`.
mlir::Value buildScaled(LocBuilder &builder, mlir::Value tensor, float factor);

/// Replaces a block of experts by operations that have adjoints: a loop over experts, each of which multiplies the rows that chose it. Takes
/// the work of the chosen experts, and a comparison for each pair of choices.
void groupExperts(mlir::RewriterBase &rewriter, MoeOp op);

} // namespace hone

#endif // HONE_TRANSFORMS_DECOMPOSEDPARTS_H
