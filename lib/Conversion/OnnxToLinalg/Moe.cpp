// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft MoE: the experts of a row are chosen here, hone.moe applies them.

#include "Formula.h"
#include "Loops.h"

#include "hone/Dialect/Hone/HoneOps.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// The chosen experts of each row: `[rows, k]`, the best first.
struct Choice {
  Value ids, logits;
};

/// Weights of the experts' layers as hone.moe wants them.
struct Experts {
  Value up, upBias, gate, gateBias;
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
static Value weigh(Node &node, Value chosen, Value all) {
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

/// Half of the rows of `[E, 2 I, ...]`: every second one, or those of one half.
static Value takeRows(Node &node, Value tensor, bool isInterleaved, bool isSecond) {
  if (!tensor)
    return {};
  SmallVector<Size> sizes = node.sizes(tensor), offsets(sizes.size(), node.b.getIndexAttr(0));
  SmallVector<Size> steps(sizes.size(), node.b.getIndexAttr(1));
  sizes[1] = node.math.floorDiv(sizes[1], node.b.getIndexAttr(2));
  if (isSecond)
    offsets[1] = isInterleaved ? Size(node.b.getIndexAttr(1)) : sizes[1];
  if (isInterleaved)
    steps[1] = node.b.getIndexAttr(2);
  return node.slice(tensor, offsets, sizes, steps);
}

static FailureOr<Activation> getActivation(Node &node) {
  StringRef name = node.string("activation_type", "relu");
  if (name == "relu")
    return Activation::Relu;
  if (name == "gelu")
    return Activation::Gelu;
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
      return Experts{node.in(2), node.in(3), {}, {}};
    return Experts{node.in(6), node.in(7), node.in(2), node.in(3)};
  }
  if (node.real("activation_alpha", 1) != 1 || node.real("activation_beta", 0) != 0 ||
      node.hasAttribute("swiglu_limit")) {
    node.fail()
        << "unsupported parameters of swiglu; supported: activation_alpha 1, activation_beta 0 and no swiglu_limit";
    return failure();
  }
  bool isInterleaved = fusion == 1;
  return Experts{takeRows(node, node.in(2), isInterleaved, true), takeRows(node, node.in(3), isInterleaved, true),
                 takeRows(node, node.in(2), isInterleaved, false), takeRows(node, node.in(3), isInterleaved, false)};
}

static LogicalResult lowerMoe(Node &node) {
  if (node.integer("use_sparse_mixer"))
    return node.fail() << "unsupported attribute 'use_sparse_mixer'; supported: 0";
  auto activation = getActivation(node);
  auto experts = getExperts(node);
  if (failed(activation) || failed(experts))
    return failure();
  int64_t count = node.integer("k", 1);
  auto known = IndexMath::getConstant(node.sizes(node.in(1)).back());
  if (node.rank(1) != 2 || count < 1 || (known && count > *known))
    return node.fail() << "expected router_probs [rows, experts] and k between 1 and the experts, but got "
                       << node.type(1) << " and " << count;
  Type wide = getAccumulator(node.element(1));
  Value logits = convertFloats(node, node.in(1), wide);
  Choice choice = choose(node, logits, count);
  Value weights = weigh(node, choice.logits, node.integer("normalize_routing_weights") ? choice.logits : logits);
  SmallVector<Size> sizes = node.sizes(node.in(0)), rows = node.sizes(weights);
  Value x = node.reshape(node.in(0), {rows[0], sizes.back()});
  Value result = MoeOp::create(node.b, x.getType(), x, choice.ids, weights, experts->up, node.in(4), experts->gate,
                               experts->upBias, node.in(5), experts->gateBias, *activation);
  node.lowerer.setSizes(result, {rows[0], sizes.back()});
  node.set(0, node.reshape(result, sizes));
  return success();
}

void addMoeLowerings(LoweringTable &table) { table["onnx.com.microsoft.MoE"] = lowerMoe; }

} // namespace hone::lowering
