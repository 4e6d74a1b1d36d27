// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mathematical functions as arithmetic. Functions that are not approximated here stay calls of the C library: upstream's
// polynomials for sin and cos lose large numbers, those for log subnormal ones (ExpandLogarithms.cpp has its own).

#include "ExpandLogarithms.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Approximation.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace hone {
#define GEN_PASS_DEF_LOWERMATH
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

bool isApproximated(StringRef name) {
  return llvm::is_contained({math::ExpOp::getOperationName(), math::Exp2Op::getOperationName(),
                             math::ExpM1Op::getOperationName(), math::TanhOp::getOperationName(),
                             math::ErfOp::getOperationName()},
                            name);
}

/// The same with what this room expands itself.
bool isExpanded(StringRef name) {
  return isApproximated(name) || name == math::LogOp::getOperationName() || name == math::Log1pOp::getOperationName();
}

struct LowerMath : impl::LowerMathBase<LowerMath> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    populateMathAlgebraicSimplificationPatterns(set);
    populateMathF32ExpansionPatterns(set, isExpanded);
    populateMathPolynomialApproximationPatterns(set, isApproximated);
    populateLogarithmPatterns(set);
    arith::populateCeilFloorDivExpandOpsPatterns(set);
    arith::populateExpandBFloat16Patterns(set);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    if (failed(applyPatternsGreedily(getOperation(), patterns)))
      signalPassFailure();
  }

private:
  FrozenRewritePatternSet patterns;
};

} // namespace
} // namespace hone
