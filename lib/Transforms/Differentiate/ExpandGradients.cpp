// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-expand-gradients: gradients that a model itself asks for.

#include "Models.h"
#include "Prepare.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Onnx/Gradient.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {
#define GEN_PASS_DEF_EXPANDGRADIENTS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

/// The gradient of a sum of all elements of `like`: ones.
static Value buildOnes(LocBuilder &b, Value like) {
  auto type = cast<RankedTensorType>(getGradientType(like));
  Value empty = tensor::EmptyOp::create(b, tensor::getMixedSizes(b, b.getLoc(), like), type.getElementType());
  Value one = arith::ConstantOp::create(b, b.getFloatAttr(type.getElementType(), 1));
  return castTo(b, linalg::FillOp::create(b, one, empty).getResult(0), type);
}

static LogicalResult expand(Operation *op) {
  Block &block = *op->getBlock();
  auto want = [&] {
    Adjoints adjoints;
    for (Value x : op->getOperands().take_front(op->getNumResults()))
      adjoints.want(x);
    adjoints.wantResults(block, op);
    return adjoints;
  };
  if (failed(prepareForAdjoints(block, want)))
    return failure();
  Adjoints adjoints = want();
  SmallVector<Operation *> ops;
  for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode())
    ops.push_back(before);
  std::reverse(ops.begin(), ops.end());
  LocBuilder b(op->getLoc(), op);
  Value y = op->getOperands().back();
  adjoints.add(b, y, buildOnes(b, y));
  if (failed(buildAdjoints(b, ops, adjoints)))
    return failure();
  b.setLoc(op->getLoc());
  for (auto [x, result] : llvm::zip(op->getOperands(), op->getResults())) {
    Value gradient = adjoints.get(x);
    result.replaceAllUsesWith(castTo(b, gradient ? gradient : buildZeroGradient(b, x), result.getType()));
  }
  op->erase();
  return success();
}

namespace {
struct ExpandGradients : impl::ExpandGradientsBase<ExpandGradients> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<HoneDialect, arith::ArithDialect, linalg::LinalgDialect, math::MathDialect, scf::SCFDialect,
                    tensor::TensorDialect>();
    registerAdjoints(registry);
  }

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (op->getName().getStringRef() == onnxir::kGradientName)
        ops.push_back(op);
    });
    if (ops.empty())
      return;
    splitForAdjoints(getOperation());
    for (Operation *op : ops) {
      if (failed(expand(op)))
        return signalPassFailure();
      ++numExpanded;
    }
    eraseUnused(getOperation());
  }
};
} // namespace

} // namespace hone
