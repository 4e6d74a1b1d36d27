// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Upstream's patterns that fuse elementwise operations, with a bound: what is fused is copied, and LLVM's vectorizer takes time that
// grows faster than the body of a loop.

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace hone {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

/// Whether nothing else reads what `operand` is.
static bool isOnlyUse(OpOperand *operand) {
  Operation *producer = operand->get().getDefiningOp();
  return producer && producer->hasOneUse();
}

static int64_t countOperations(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return generic ? llvm::range_size(*generic.getBody()) : 0;
}

static int64_t countGenerics(Operation *op) {
  int64_t count = 0;
  op->walk([&](linalg::GenericOp) { ++count; });
  return count;
}

namespace {

struct FuseElementwise : impl::FuseElementwiseBase<FuseElementwise> {
  using impl::FuseElementwiseBase<FuseElementwise>::FuseElementwiseBase;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    linalg::populateElementwiseOpsFusionPatterns(patterns, [this](OpOperand *operand) {
      return isOnlyUse(operand) &&
             countOperations(operand->get().getDefiningOp()) + countOperations(operand->getOwner()) <= maxOperations;
    });
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, isOnlyUse);
    tensor::populateBubbleUpExpandShapePatterns(patterns);
    affine::AffineApplyOp::getCanonicalizationPatterns(patterns, context);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, context);
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
    context->getLoadedDialect<linalg::LinalgDialect>()->getCanonicalizationPatterns(patterns);
    linalg::populateConstantFoldLinalgOperations(patterns, isOnlyUse);
    int64_t before = countGenerics(getOperation());
    (void)applyPatternsGreedily(getOperation(), std::move(patterns),
                                GreedyRewriteConfig().setUseTopDownTraversal(true));
    numFused += before - countGenerics(getOperation());
  }
};

} // namespace
} // namespace hone
