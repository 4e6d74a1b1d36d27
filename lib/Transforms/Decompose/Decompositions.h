//===- Decompositions.h - the decompositions, one function a family -----------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each function adds the patterns of its family, labelled with the operations' names, so that a pass can choose.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_TRANSFORMS_DECOMPOSE_DECOMPOSITIONS_H
#define HONE_LIB_TRANSFORMS_DECOMPOSE_DECOMPOSITIONS_H

#include "hone/Transforms/Loops.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/RoundActivations.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace hone {

/// Replaces an operation by what `build` makes of it: a tensor of the operation's type but for sizes it may know or not, or one
/// for each of its results.
template <typename Op, typename Results>
struct DecomposePattern : mlir::OpRewritePattern<Op> {
  using Build = Results (*)(LocBuilder &, Op);

  DecomposePattern(mlir::MLIRContext *context, Build build) : mlir::OpRewritePattern<Op>(context), build(build) {}

  llvm::LogicalResult matchAndRewrite(Op op, mlir::PatternRewriter &rewriter) const override {
    LocBuilder builder(op.getLoc(), rewriter);
    llvm::SmallVector<mlir::Value> values{build(builder, op)};
    for (auto [value, type] : llvm::zip_equal(values, op->getResultTypes()))
      if (value.getType() != type)
        value = mlir::tensor::CastOp::create(builder, type, value);
    rewriter.replaceOp(op, values);
    return llvm::success();
  }

  Build build;
};

template <typename Op, typename Results>
void addDecomposition(mlir::RewritePatternSet &patterns, Results (*build)(LocBuilder &, Op)) {
  patterns.addWithLabel<DecomposePattern<Op, Results>>({Op::getOperationName()}, patterns.getContext(), build);
}

void addAttentionDecomposition(mlir::RewritePatternSet &patterns);
void addAttentionGradientDecomposition(mlir::RewritePatternSet &patterns);
void addConvolutionDecompositions(mlir::RewritePatternSet &patterns);
void addLinearAttentionDecomposition(mlir::RewritePatternSet &patterns);
void addLossDecomposition(mlir::RewritePatternSet &patterns);
void addMlpDecompositions(mlir::RewritePatternSet &patterns);
void addNormDecompositions(mlir::RewritePatternSet &patterns);
void addParamDecompositions(mlir::RewritePatternSet &patterns);
void addProductDecompositions(mlir::RewritePatternSet &patterns);
void addRopeDecomposition(mlir::RewritePatternSet &patterns);
void addSelectionDecompositions(mlir::RewritePatternSet &patterns);

/// Reads elements of a tensor, encoded or not, where it lies: no copy of it is made.
class EncodedReader {
public:
  EncodedReader(LocBuilder &builder, mlir::Value tensor);
  /// The element at `indices`.
  mlir::Value read(LocBuilder &builder, mlir::ValueRange indices) const;

private:
  mlir::Value tensor;
  EncodingInterface encoding;
  llvm::SmallVector<mlir::Value, 2> planes;
};

/// `tensor` without encoding: unpacked if it has one.
mlir::Value getPlain(LocBuilder &builder, mlir::Value tensor);

/// The f32 products of the rows of x `[…, K]`, rounded if the encoding of the weight `[N, K]` says so, with those of the
/// weight, plus the bias `[N]` unless it is null.
mlir::Value buildLinear(LocBuilder &builder, mlir::Value x, mlir::Value weight, mlir::Value bias);

/// The f32 value `x` after the activation.
mlir::Value buildActivation(LocBuilder &builder, Activation activation, mlir::Value x);

/// `activation(gate) * up`, or `activation(up)` where `gate` is null, rounded to `elements`.
mlir::Value buildHidden(LocBuilder &builder, Activation activation, mlir::Value up, mlir::Value gate,
                        mlir::Type elements);

/// Replaces a block of experts by products of each, as splitIntoProducts says.
void splitMoe(mlir::RewriterBase &rewriter, MoeOp op);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DECOMPOSE_DECOMPOSITIONS_H
