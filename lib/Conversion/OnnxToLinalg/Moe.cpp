// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft MoE: the experts of a row are chosen here, hone.moe applies them.

#include "Formula.h"
#include "Indices.h"
#include "Loops.h"

#include "hone/Dialect/Hone/HoneOps.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// The chosen experts of each row: `[rows, k]`, the best first.
struct Choice {
  Value ids, logits;
};

/// Weights of the experts' layers; the gate is null in a plain block.
struct Experts {
  Value up, upBias, gate, gateBias;
  std::optional<FusedRows> fused;
  std::optional<Swiglu> swiglu;
};

} // namespace

/// The index of the first greatest element of each row of `[rows, E]`, with the element.
static std::pair<Value, Value> findGreatest(Node &node, Value logits) {
  Type element = cast<RankedTensorType>(logits.getType()).getElementType(), index = node.b.getI64Type();
  Value least = node.constant(-std::numeric_limits<double>::infinity(), element);
  Value peak = node.reduce(logits, {1}, /*keep=*/true, least, [](Builder &b, Value x, Value best) -> Value {
    return arith::MaximumFOp::create(b, x, best);
  });
  Value last = node.math.scalar(node.size(logits, 1), index);
  Value candidates =
      node.elementwiseOver(node.sizes(logits), {logits, peak}, index, [&](Builder &b, ValueRange v) -> Value {
        Value at = arith::IndexCastOp::create(b, index, linalg::IndexOp::create(b, 1));
        return arith::SelectOp::create(b, Number{&b, v[0]} == Number{&b, v[1]}, at, last);
      });
  Value first = node.reduce(candidates, {1}, /*keep=*/true, last, [](Builder &b, Value x, Value best) -> Value {
    return arith::MinSIOp::create(b, x, best);
  });
  return {first, peak};
}

static Choice choose(Node &node, Value logits, int64_t count) {
  Type element = cast<RankedTensorType>(logits.getType()).getElementType();
  SmallVector<Value> ids, chosen;
  for (int64_t k = 0; k < count; ++k) {
    auto [id, peak] = findGreatest(node, logits);
    ids.push_back(id);
    chosen.push_back(peak);
    logits = node.elementwiseOver(node.sizes(logits), {logits, id}, element, [](Builder &b, ValueRange v) -> Value {
      Value at = arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, 1));
      Value isTaken = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at, v[1]);
      Number x{&b, v[0]};
      return select(isTaken, x.with(-std::numeric_limits<double>::infinity()), x).value;
    });
  }
  return {join(node, ids, 1), join(node, chosen, 1)};
}

/// Softmax of the chosen logits, over themselves or over all of their row.
static Value makeRoutingWeights(Node &node, Value chosen, Value all) {
  Type element = cast<RankedTensorType>(chosen.getType()).getElementType();
  Value peak = sliceAxis(node, chosen, 1, node.b.getIndexAttr(0), node.b.getIndexAttr(1));
  auto raise = [&](Value logits) {
    return node.elementwiseOver(node.sizes(logits), {logits, peak}, element, [](Builder &b, ValueRange v) {
      return exp(Number{&b, v[0]} - Number{&b, v[1]}).value;
    });
  };
  Value sum = node.reduce(raise(all), {1}, /*keep=*/true, node.zero(element),
                          [](Builder &b, Value x, Value total) { return addScalars(b, total, x); });
  return node.elementwiseOver(node.sizes(chosen), {raise(chosen), sum}, element,
                              [](Builder &b, ValueRange v) -> Value { return arith::DivFOp::create(b, v[0], v[1]); });
}

static FailureOr<Activation> getActivation(Node &node) {
  StringRef name = node.string("activation_type", "relu");
  if (name == "relu")
    return Activation::Relu;
  if (name == "gelu")
    return Activation::GeluTanh; // as onnxruntime calculates it
  if (name == "silu" || name == "swiglu")
    return Activation::Silu;
  node.fail() << "unsupported activation_type '" << name << "'; supported: relu, gelu, silu, swiglu";
  return failure();
}

/// fc1 is the gate where there is an fc3; SwiGLU has both in fc1.
static FailureOr<Experts> getExperts(Node &node) {
  int64_t fusion = node.integer("swiglu_fusion");
  if (node.string("activation_type", "relu") != "swiglu" || fusion == 0) {
    if (!node.has(6))
      return Experts{node.in(2), node.in(3), {}, {}, {}, {}};
    return Experts{node.in(6), node.in(7), node.in(2), node.in(3), {}, {}};
  }
  Experts experts{node.in(2), node.in(3), {}, {}, fusion == 1 ? FusedRows::Alternate : FusedRows::Halves, {}};
  Swiglu swiglu{static_cast<float>(node.real("activation_alpha", 1)),
                static_cast<float>(node.real("activation_beta", 0)),
                static_cast<float>(node.real("swiglu_limit", std::numeric_limits<float>::infinity()))};
  if (!std::isfinite(swiglu.alpha) || !std::isfinite(swiglu.offset) || !(swiglu.limit > 0)) {
    node.fail()
        << "expected activation_alpha and activation_beta to be finite and swiglu_limit to be positive, but got "
        << swiglu.alpha << ", " << swiglu.offset << " and " << swiglu.limit;
    return failure();
  }
  if (swiglu.alpha != 1 || swiglu.offset != 0 || std::isfinite(swiglu.limit))
    experts.swiglu = swiglu;
  return experts;
}

/// `[E, N, K]` as `[E · N, K]`; null if `weights` is.
static Value stack(Node &node, Value weights) {
  if (!weights)
    return {};
  SmallVector<Size> sizes = node.sizes(weights);
  return node.reshape(weights, {node.math.mul(sizes[0], sizes[1]), sizes[2]});
}

/// Whether sizes of the experts are known, and those of fc1, fc2 and fc3 fit each other as hone.moe wants.
static LogicalResult checkSizes(Node &node, const Experts &experts) {
  Value weights[] = {experts.up, node.in(4), experts.gate};
  for (Value weight : weights)
    if (weight && !(cast<RankedTensorType>(weight.getType()).hasStaticShape() &&
                    cast<RankedTensorType>(weight.getType()).getRank() == 3))
      return node.fail() << "expected the weights of experts to have three known sizes, but got " << weight.getType();
  ArrayRef<int64_t> up = cast<RankedTensorType>(experts.up.getType()).getShape(),
                    down = cast<RankedTensorType>(node.in(4).getType()).getShape();
  bool fits = up[0] > 0 && up[2] > 0 && down[0] == up[0] && down[1] == up[2] &&
              up[1] == down[2] * (experts.fused ? 2 : 1) &&
              (!experts.gate || cast<RankedTensorType>(experts.gate.getType()).getShape() == up);
  if (!fits)
    return node.fail() << "expected the layers of the experts to fit each other and the input, but got "
                       << experts.up.getType() << " and " << node.in(4).getType();
  return success();
}

LogicalResult checkExpertRows(Node &node, ArrayRef<Size> input, Size chosen, Size width) {
  Size rows = getProduct(node, input.drop_back());
  if (failed(requireEqual(node, rows, chosen, "the rows of the input and of the router's choice")))
    return failure();
  return requireEqual(node, input.back(), width, "the columns of the input and of the experts");
}

static LogicalResult lowerMoe(Node &node) {
  if (node.integer("use_sparse_mixer"))
    return node.fail() << "unsupported attribute 'use_sparse_mixer'; supported: 0";
  auto activation = getActivation(node);
  auto experts = getExperts(node);
  if (failed(activation) || failed(experts) || failed(checkSizes(node, *experts)))
    return failure();
  int64_t count = node.integer("k", 1);
  auto known = IndexMath::getConstant(node.sizes(node.in(1)).back());
  if (node.rank(1) != 2 || count < 1 || (known && count > *known))
    return node.fail() << "expected router_probs [rows, experts] and k between 1 and the experts, but got "
                       << node.type(1) << " and " << count;
  SmallVector<Size> sizes = node.sizes(node.in(0));
  ArrayRef<int64_t> up = cast<RankedTensorType>(experts->up.getType()).getShape();
  if (failed(checkExpertRows(node, sizes, node.size(node.in(1), 0), node.b.getIndexAttr(up[2]))) ||
      failed(requireEqual(node, node.size(node.in(1), 1), node.b.getIndexAttr(up[0]),
                          "the columns of router_probs and the experts")))
    return failure();
  Type wide = getAccumulator(node.element(1));
  Value logits = convertFloats(node, node.in(1), wide);
  Choice choice = choose(node, logits, count);
  Value weights =
      makeRoutingWeights(node, choice.logits, node.integer("normalize_routing_weights") ? choice.logits : logits);
  SmallVector<Size> rows = node.sizes(weights);
  Value x = node.reshape(node.in(0), {rows[0], sizes.back()});
  ExpertLayers layers;
  layers.up = stack(node, experts->up), layers.upBias = experts->upBias;
  layers.gate = stack(node, experts->gate), layers.gateBias = experts->gateBias;
  layers.down = stack(node, node.in(4)), layers.downBias = node.in(5);
  layers.activation = *activation, layers.fused = experts->fused, layers.swiglu = experts->swiglu;
  Value result = MoeOp::create(node.b, x, {choice.ids, weights}, layers);
  node.lowerer.setSizes(result, {rows[0], sizes.back()});
  node.set(0, node.reshape(result, sizes));
  return success();
}

void addMoeLowerings(LoweringTable &table) { table["onnx.com.microsoft.MoE"] = lowerMoe; }

} // namespace hone::lowering
