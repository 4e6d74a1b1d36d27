// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The adjoint of attention from its result and lse (Dao 2023, "FlashAttention-2", section 3.1): probabilities are computed anew from
// the logits and lse, and the sum that softmax subtracts is that of a row of the result times its gradient. With the query heads of a KV
// head and their positions as rows of one matrix, all products are of batches of matrices.
//
//   P = exp(logit - lse)   dV = Pᵀ dO   dP = dO Vᵀ   dS = P (dP - sum of dO · O + dlse)   dQ = dS K   dK = dSᵀ Q
//
// And that of rope, which rotates back.

#include "Models.h"
#include "Products.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;

namespace hone {

namespace {

/// Loops of the logits `[B, Hk, G, Sq, Sk]`; the last is in their place that of the result.
class AttentionAdjoint {
public:
  AttentionAdjoint(LocBuilder &b, AttentionOp op, Adjoints &adjoints);
  void build();

private:
  Value expand(Value tensor, int64_t dim) { return expandHeads(b, tensor, dim, getSize(b, op.getKey(), 1)); }
  Value asRows(Value tensor);
  Value asLogits(Value matrix);
  Value buildTotals();
  Value buildProbabilities(Value logits);
  Value buildSubtracted();
  Value buildSlopes(Value products, Value probabilities);
  void addQuery(Value slopes);

  LocBuilder &b;
  AttentionOp op;
  Adjoints &adjoints;
  Value g;             // of the result, `[B, Hk, G, Sq, Dv]`
  Value queries, rows; // and the gradient, as matrices `[B, Hk, G · Sq, …]`
  Sizes sizes;         // of the logits
  SmallVector<int64_t> all = loopRange(0, 5), row = loopRange(0, 4);
};

} // namespace

AttentionAdjoint::AttentionAdjoint(LocBuilder &b, AttentionOp op, Adjoints &adjoints)
    : b(b), op(op), adjoints(adjoints) {
  Value query = expand(op.getQuery(), 1), gradient = adjoints.get(op.getResult());
  g = expand(gradient ? gradient : buildZeros(b, op.getResult()), 1);
  sizes = tensor::getMixedSizes(b, b.getLoc(), query);
  sizes.back() = getSize(b, op.getKey(), 2);
  queries = asRows(query);
  rows = asRows(g);
}

/// `[B, Hk, G, Sq, N]` as `[B, Hk, G · Sq, N]`.
Value AttentionAdjoint::asRows(Value tensor) {
  return tensor::CollapseShapeOp::create(b, tensor, ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}, {4}});
}

/// The inverse; the size of the last dimension is that of `matrix`.
Value AttentionAdjoint::asLogits(Value matrix) {
  Sizes whole = sizes;
  whole.back() = getSize(b, matrix, 3);
  auto type = RankedTensorType::get(decomposeMixedValues(whole).first, b.getF32Type());
  return tensor::ExpandShapeOp::create(b, type, matrix, ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}, {4}}, whole);
}

/// The logarithm of what the exponentials of a row's logits are divided by: lse, with the sink where there is one.
Value AttentionAdjoint::buildTotals() {
  Value lse = expand(op.getLse(), 1);
  if (!op.getSinks())
    return lse;
  return buildMap(b, ArrayRef(sizes).drop_back(), b.getF32Type(), {{lse, row}, {expand(op.getSinks(), 0), {1, 2}}},
                  [](LocBuilder &inner, ValueRange args) -> Value {
                    auto less = [&](Value a, Value c) { return arith::SubFOp::create(inner, a, c); };
                    Value most = arith::MaximumFOp::create(inner, args[0], args[1]);
                    Value sum = arith::AddFOp::create(inner, math::ExpOp::create(inner, less(args[0], most)),
                                                      math::ExpOp::create(inner, less(args[1], most)));
                    return arith::AddFOp::create(inner, most, math::LogOp::create(inner, sum));
                  });
}

Value AttentionAdjoint::buildProbabilities(Value logits) {
  return buildMap(b, sizes, b.getF32Type(), {{logits, all}, {buildTotals(), row}},
                  [](LocBuilder &inner, ValueRange args) -> Value {
                    Value hidden = constantF32(inner, -std::numeric_limits<float>::infinity());
                    Value isHidden = arith::CmpFOp::create(inner, arith::CmpFPredicate::OEQ, args[0], hidden);
                    Value probability = math::ExpOp::create(inner, arith::SubFOp::create(inner, args[0], args[1]));
                    return arith::SelectOp::create(inner, isHidden, constantF32(inner, 0.0f), probability);
                  });
}

/// What is subtracted from dP in each row: the sum of dO · O, less the gradient of lse.
Value AttentionAdjoint::buildSubtracted() {
  ArrayRef<OpFoldResult> leading = ArrayRef(sizes).drop_back();
  Value sum = buildContraction(b, leading, {g, all}, {expand(op.getResult(), 1), all});
  Value ofLse = op.getLse() ? adjoints.get(op.getLse()) : Value();
  if (!ofLse)
    return sum;
  return buildMap(
      b, leading, b.getF32Type(), {{sum, row}, {expand(ofLse, 1), row}},
      [](LocBuilder &inner, ValueRange args) -> Value { return arith::SubFOp::create(inner, args[0], args[1]); });
}

/// The gradients of the products of queries and keys.
Value AttentionAdjoint::buildSlopes(Value products, Value probabilities) {
  Value ofProbabilities = asLogits(multiply(b, rows, transposeLast(b, op.getValue())));
  SmallVector<Operand> operands{
      {probabilities, all}, {ofProbabilities, all}, {buildSubtracted(), row}, {products, all}};
  float scale = op.getScale().convertToFloat();
  return buildMap(b, sizes, b.getF32Type(), operands, [&](LocBuilder &inner, ValueRange args) -> Value {
    auto mul = [&](Value a, Value c) { return arith::MulFOp::create(inner, a, c); };
    Value slope = mul(args[0], arith::SubFOp::create(inner, args[1], args[2]));
    Value factor = constantF32(inner, scale);
    if (std::optional<APFloat> softcap = op.getSoftcap()) {
      Value capped = math::TanhOp::create(inner, mul(args[3], constantF32(inner, scale / softcap->convertToFloat())));
      factor = mul(factor, arith::SubFOp::create(inner, constantF32(inner, 1.0f), mul(capped, capped)));
    }
    return mul(slope, factor);
  });
}

void AttentionAdjoint::addQuery(Value slopes) {
  Value gradient = asLogits(multiply(b, slopes, op.getKey()));
  adjoints.add(b, op.getQuery(),
               tensor::CollapseShapeOp::create(b, gradient, ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}, {4}}));
}

void AttentionAdjoint::build() {
  Value products = asLogits(multiply(b, queries, transposeLast(b, op.getKey())));
  Value probabilities = buildProbabilities(buildAttentionLogits(b, op, products));
  if (adjoints.isWanted(op.getValue()))
    adjoints.add(b, op.getValue(), multiply(b, transposeLast(b, asRows(probabilities)), rows));
  if (!adjoints.isWanted(op.getQuery()) && !adjoints.isWanted(op.getKey()))
    return;
  Value slopes = asRows(buildSlopes(products, probabilities));
  if (adjoints.isWanted(op.getQuery()))
    addQuery(slopes);
  if (adjoints.isWanted(op.getKey()))
    adjoints.add(b, op.getKey(), multiply(b, transposeLast(b, slopes), queries));
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

  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &builder, Adjoints &adjoints) const {
    AttentionAdjoint(builder, cast<AttentionOp>(op), adjoints).build();
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
