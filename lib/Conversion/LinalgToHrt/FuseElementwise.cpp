// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Upstream's patterns that fuse elementwise operations, with a bound: what is fused is copied, and LLVM's vectorizer takes time that
// grows faster than the body of a loop.

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
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

/// Whether an element costs more to compute than to load.
static bool isCostly(linalg::GenericOp producer) {
  constexpr int64_t few = 2; // operations that take no longer than a load
  int64_t count = 0;
  for (Operation &op : producer.getBody()->without_terminator()) {
    if (isa<math::MathDialect>(op.getDialect()) ||
        isa<arith::DivFOp, arith::FPToSIOp, arith::SIToFPOp, tensor::ExtractOp>(op))
      return true;
    count += !isa<linalg::IndexOp, arith::IndexCastOp, arith::ConstantOp>(op);
  }
  return count > few;
}

/// Whether the producer loads elements at indices that it computes. Such loads are not hoisted out of a loop that stores.
static bool loadsElements(linalg::GenericOp producer) {
  return !producer.getBody()->getOps<tensor::ExtractOp>().empty();
}

/// Whether the loops of the reader, after fusion, would compute what is costly again for each of their rows, or for each element of a row.
/// What is the same for all of a row is computed once for it, unless it is loaded.
static bool isRepeated(OpOperand *operand) {
  auto reader = dyn_cast<linalg::GenericOp>(operand->getOwner());
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  if (!reader || !producer || reader.getNumLoops() == 0)
    return false;
  AffineMap map = reader.getMatchingIndexingMap(operand);
  unsigned loops = reader.getNumLoops();
  bool isAlongRows = map.isFunctionOfDim(loops - 1);
  bool isOfAll = llvm::all_of(llvm::seq(loops), [&](unsigned dim) { return map.isFunctionOfDim(dim); });
  return (isAlongRows || loadsElements(producer)) && !isOfAll && isCostly(producer);
}

namespace {

struct FuseElementwise : impl::FuseElementwiseBase<FuseElementwise> {
  using impl::FuseElementwiseBase<FuseElementwise>::FuseElementwiseBase;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    linalg::populateElementwiseOpsFusionPatterns(patterns, [this](OpOperand *operand) {
      return isOnlyUse(operand) && !isRepeated(operand) &&
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
