//===- DecomposeAttentionGradient.cpp - decomposition of the gradient of attention -------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Probabilities of all queries and keys, computed anew from the logits and lse, and five products of batches of matrices.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace hone;

namespace {

/// Loops of the logits `[B, Hk, G, Sq, Sk]`; the last is in their place that of the result.
class GradientBuilder {
public:
  GradientBuilder(LocBuilder &b, AttentionGradientOp op, MultiplyMatrices multiply);
  SmallVector<Value> build();

private:
  Value expand(Value tensor) { return expandHeads(b, tensor, 1, getSize(b, op.getKey(), 1)); }
  Value asRows(Value tensor);
  Value asLogits(Value matrix);
  Value buildProbabilities(Value logits);
  Value buildSlopes(Value products, Value probabilities);

  LocBuilder &b;
  AttentionGradientOp op;
  MultiplyMatrices multiply;
  Value queries, gradients; // as matrices `[B, Hk, G · Sq, …]`
  Sizes sizes;              // of the logits
  SmallVector<int64_t> all = loopRange(0, 5), row = loopRange(0, 4);
};

} // namespace

GradientBuilder::GradientBuilder(LocBuilder &b, AttentionGradientOp op, MultiplyMatrices multiply)
    : b(b), op(op), multiply(multiply) {
  Value query = expand(op.getQuery());
  sizes = tensor::getMixedSizes(b, b.getLoc(), query);
  sizes.back() = getSize(b, op.getKey(), 2);
  queries = asRows(query);
  gradients = asRows(expand(op.getGradient()));
}

/// `[B, Hk, G, Sq, N]` as `[B, Hk, G · Sq, N]`.
Value GradientBuilder::asRows(Value tensor) {
  return tensor::CollapseShapeOp::create(b, tensor, ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}, {4}});
}

/// The inverse; the size of the last dimension is that of `matrix`.
Value GradientBuilder::asLogits(Value matrix) {
  Sizes whole = sizes;
  whole.back() = getSize(b, matrix, 3);
  auto type = RankedTensorType::get(decomposeMixedValues(whole).first, b.getF32Type());
  return tensor::ExpandShapeOp::create(b, type, matrix, ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}, {4}}, whole);
}

Value GradientBuilder::buildProbabilities(Value logits) {
  return buildMap(b, sizes, b.getF32Type(), {{logits, all}, {expand(op.getLse()), row}},
                  [](LocBuilder &inner, ValueRange args) -> Value {
                    Value hidden = constantF32(inner, -std::numeric_limits<float>::infinity());
                    Value isHidden = arith::CmpFOp::create(inner, arith::CmpFPredicate::OEQ, args[0], hidden);
                    Value probability = math::ExpOp::create(inner, arith::SubFOp::create(inner, args[0], args[1]));
                    return arith::SelectOp::create(inner, isHidden, constantF32(inner, 0.0f), probability);
                  });
}

/// The gradients of the products of queries and keys.
Value GradientBuilder::buildSlopes(Value products, Value probabilities) {
  Value ofProbabilities = asLogits(multiply(b, gradients, transposeLast(b, op.getValue())));
  SmallVector<Operand> operands{
      {probabilities, all}, {ofProbabilities, all}, {expand(op.getSubtracted()), row}, {products, all}};
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

SmallVector<Value> GradientBuilder::build() {
  Value products = asLogits(multiply(b, queries, transposeLast(b, op.getKey())));
  Value probabilities = buildProbabilities(buildAttentionLogits(b, getParts(op), products));
  Value ofValue = multiply(b, transposeLast(b, asRows(probabilities)), gradients);
  Value slopes = asRows(buildSlopes(products, probabilities));
  Value ofQuery = tensor::CollapseShapeOp::create(b, asLogits(multiply(b, slopes, op.getKey())),
                                                  ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}, {4}});
  return {ofQuery, multiply(b, transposeLast(b, slopes), queries), ofValue};
}

SmallVector<Value> hone::buildAttentionGradient(LocBuilder &builder, AttentionGradientOp op,
                                                MultiplyMatrices multiply) {
  return GradientBuilder(builder, op, multiply).build();
}

/// The product as a generic operation.
static Value contractMatrices(LocBuilder &b, Value left, Value right) {
  Sizes sizes = tensor::getMixedSizes(b, b.getLoc(), left);
  sizes.back() = getSize(b, right, 3);
  return buildContraction(b, sizes, {left, {0, 1, 2, 4}}, {right, {0, 1, 4, 3}});
}

static SmallVector<Value> decomposeAttentionGradient(LocBuilder &builder, AttentionGradientOp op) {
  return buildAttentionGradient(builder, op, contractMatrices);
}

void hone::addAttentionGradientDecomposition(RewritePatternSet &patterns) {
  addDecomposition<AttentionGradientOp>(patterns, decomposeAttentionGradient);
}
