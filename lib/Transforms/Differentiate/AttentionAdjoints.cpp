// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The adjoint of attention from its result and lse (Dao 2023, "FlashAttention-2", section 3.1), as `hone.attention_gradient`: probabilities
// are computed anew from the logits and lse, and the sum that softmax subtracts is that of a row of the result times its gradient. Keys that
// `skip` lets a kernel leave out have their gradients.
//
// And that of rope, which rotates back.

#include "Models.h"
#include "Products.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

/// The logarithm of what the exponentials of a row's logits are divided by: lse, with the sink where there is one.
static Value buildTotals(LocBuilder &b, AttentionOp op) {
  if (!op.getSinks())
    return op.getLse();
  return buildMap(b, tensor::getMixedSizes(b, b.getLoc(), op.getLse()), b.getF32Type(),
                  {{op.getLse(), loopRange(0, 3)}, {op.getSinks(), {1}}},
                  [](LocBuilder &inner, ValueRange args) -> Value {
                    auto less = [&](Value a, Value c) { return arith::SubFOp::create(inner, a, c); };
                    Value most = arith::MaximumFOp::create(inner, args[0], args[1]);
                    Value sum = arith::AddFOp::create(inner, math::ExpOp::create(inner, less(args[0], most)),
                                                      math::ExpOp::create(inner, less(args[1], most)));
                    return arith::AddFOp::create(inner, most, math::LogOp::create(inner, sum));
                  });
}

/// What is subtracted from dP in each row: the sum of dO · O, less the gradient of lse.
static Value buildSubtracted(LocBuilder &b, AttentionOp op, Value gradient, Value ofLse) {
  Sizes sizes = tensor::getMixedSizes(b, b.getLoc(), op.getLse());
  SmallVector<int64_t> all = loopRange(0, 4), row = loopRange(0, 3);
  Value sum = buildContraction(b, sizes, {gradient, all}, {op.getResult(), all});
  if (!ofLse)
    return sum;
  return buildMap(
      b, sizes, b.getF32Type(), {{sum, row}, {ofLse, row}},
      [](LocBuilder &inner, ValueRange args) -> Value { return arith::SubFOp::create(inner, args[0], args[1]); });
}

namespace {

struct AttentionModel : DifferentiableOpInterface::ExternalModel<AttentionModel, AttentionOp> {
  /// Biases, slopes and sinks have gradients in the decomposition; so has lse where sinks divide by more than it.
  bool hasAdjoint(Operation *op, const Adjoints &adjoints) const {
    auto attention = cast<AttentionOp>(op);
    auto isWanted = [&](Value value) { return value && adjoints.isWanted(value); };
    Type elements = attention.getQuery().getType().getElementType();
    return elements.isF32() && elements == attention.getKey().getType().getElementType() &&
           !isWanted(attention.getBias()) && !isWanted(attention.getAlibi()) && !isWanted(attention.getSinks()) &&
           !(attention.getSinks() && attention.getLse() && !attention.getLse().use_empty());
  }

  void saveForAdjoint(Operation *op, RewriterBase &rewriter) const {
    auto attention = cast<AttentionOp>(op);
    if (attention.getLse())
      return;
    rewriter.setInsertionPoint(op);
    auto rows = attention.getResult().getType();
    auto lse = RankedTensorType::get(rows.getShape().drop_back(), rewriter.getF32Type());
    OperationState state(op->getLoc(), op->getName(), op->getOperands(), TypeRange{rows, lse}, op->getAttrs());
    Operation *saved = rewriter.create(state);
    rewriter.replaceAllUsesWith(attention.getResult(), saved->getResult(0));
    rewriter.eraseOp(op);
  }

  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &b, Adjoints &adjoints) const {
    auto attention = cast<AttentionOp>(op);
    Value of = adjoints.get(attention.getResult()), query = attention.getQuery(), key = attention.getKey(),
          value = attention.getValue();
    Value gradient = of ? of : buildZeros(b, attention.getResult());
    Value subtracted = buildSubtracted(b, attention, gradient, adjoints.get(attention.getLse()));
    auto parts = AttentionGradientOp::create(
        b, getGradientType(query), getGradientType(key), getGradientType(value), query, key, value,
        buildTotals(b, attention), subtracted, gradient, attention.getBias(), attention.getAlibi(),
        attention.getKeyBegin(), attention.getKeyEnd(), attention.getLags(), attention.getKeyPositions(),
        attention.getPatternOperands(), attention.getPatternAttr(), attention.getScaleAttr(),
        attention.getSoftcapAttr());
    adjoints.add(b, query, parts.getQueryGradient());
    adjoints.add(b, key, parts.getKeyGradient());
    adjoints.add(b, value, parts.getValueGradient());
    return success();
  }
};

struct RopeModel : DifferentiableOpInterface::ExternalModel<RopeModel, RopeOp> {
  /// Tables have gradients in the decomposition.
  bool hasAdjoint(Operation *op, const Adjoints &adjoints) const {
    auto rope = cast<RopeOp>(op);
    return !adjoints.isWanted(rope.getCos()) && !adjoints.isWanted(rope.getSin());
  }

  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &b, Adjoints &adjoints) const {
    auto rope = cast<RopeOp>(op);
    SmallVector<int64_t> all = loopRange(0, 3);
    Value back =
        buildMap(b, tensor::getMixedSizes(b, b.getLoc(), rope.getSin()), rope.getSin().getType().getElementType(),
                 {{rope.getSin(), all}},
                 [](LocBuilder &inner, ValueRange args) -> Value { return arith::NegFOp::create(inner, args[0]); });
    back = tensor::CastOp::create(b, rope.getSin().getType(), back);
    Value g = adjoints.get(rope.getResult());
    adjoints.add(b, rope.getX(), RopeOp::create(b, g.getType(), g, rope.getCos(), back, rope.getInterleaved()));
    return success();
  }
};

} // namespace

void registerAttentionAdjoints(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, HoneDialect *) {
    AttentionOp::attachInterface<AttentionModel>(*context);
    RopeOp::attachInterface<RopeModel>(*context);
  });
}

} // namespace hone
