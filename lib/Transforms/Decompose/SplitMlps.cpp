// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-split-mlps: feed-forward blocks as products, which have kernels, and the elementwise part between them.

#include "Decompositions.h"

#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace hone {

#define GEN_PASS_DEF_SPLITMLPS
#include "hone/Transforms/Passes.h.inc"

/// `x · weightᵀ + bias`, of the type that inference gives.
static Value createProduct(LocBuilder &builder, Value x, Value weight, Value bias) {
  auto rows = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape(rows.getShape());
  shape.back() = cast<RankedTensorType>(weight.getType()).getDimSize(0);
  return LinearOp::create(builder, RankedTensorType::get(shape, rows.getElementType()), x, weight, bias);
}

/// A product rounds its sums to the elements of x, a block only hidden and result: the same in f32 and wider alone.
static bool roundsNowhere(Value x) { return cast<RankedTensorType>(x.getType()).getElementTypeBitWidth() >= 32; }

static Value splitGatedMlp(LocBuilder &builder, GatedMlpOp op) {
  Value gate = createProduct(builder, op.getX(), op.getGate(), op.getGateBias());
  Value up = createProduct(builder, op.getX(), op.getUp(), op.getUpBias());
  Value hidden = buildHidden(builder, op.getActivation(), up, gate, op.getX().getType().getElementType());
  return createProduct(builder, hidden, op.getDown(), op.getDownBias());
}

static Value splitPlainMlp(LocBuilder &builder, MlpOp op) {
  Value up = createProduct(builder, op.getX(), op.getUp(), op.getUpBias());
  Value hidden = buildHidden(builder, op.getActivation(), up, /*gate=*/nullptr, op.getX().getType().getElementType());
  return createProduct(builder, hidden, op.getDown(), op.getDownBias());
}

/// A block whose weights are in the layout of kernels stays: those take the activation along.
static bool hasPlainWeights(Operation *op) {
  return llvm::all_of(op->getOperandTypes(), [](Type type) {
    Attribute encoding = cast<RankedTensorType>(type).getEncoding();
    return !encoding || isa<StoredAttr>(encoding);
  });
}

template <typename Op>
static void split(Op op, Value (*build)(LocBuilder &, Op), RewriterBase &rewriter) {
  rewriter.setInsertionPoint(op);
  LocBuilder builder(op.getLoc(), rewriter);
  Value value = build(builder, op);
  if (value.getType() != op.getType())
    value = tensor::CastOp::create(builder, op.getType(), value);
  rewriter.replaceOp(op, value);
}

bool splitIntoProducts(RewriterBase &rewriter, Operation *op) {
  if (auto gated = dyn_cast<GatedMlpOp>(op))
    split(gated, splitGatedMlp, rewriter);
  else if (auto plain = dyn_cast<MlpOp>(op))
    split(plain, splitPlainMlp, rewriter);
  else if (auto moe = dyn_cast<MoeOp>(op))
    splitMoe(rewriter, moe);
  else
    return false;
  return true;
}

namespace {
struct SplitMlpsPass : impl::SplitMlpsBase<SplitMlpsPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](Operation *op) {
      if (isa<GatedMlpOp, MlpOp>(op) && roundsNowhere(op->getOperand(0)) && hasPlainWeights(op))
        numSplit += splitIntoProducts(rewriter, op);
    });
  }
};
} // namespace

} // namespace hone
