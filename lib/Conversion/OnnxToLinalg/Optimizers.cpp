// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adagrad, Adam and Momentum of ai.onnx.preview.training: learning rate R, update count T, then parameters X, their gradients G and what
// the optimizer remembers of each, a tensor for every parameter. Results are the next parameters and the next memories, in that order. And
// Gradient, which hone-expand-gradients builds.

#include "Formula.h"

#include "hone/Dialect/Onnx/Gradient.h"

namespace hone::lowering {

/// The terms of one parameter.
namespace {
struct Terms {
  Node &node;
  ArrayRef<Number> x; // parameter, gradient, memories, learning rate, update count

  Number parameter() const { return x[0]; }
  Number memory(unsigned i) const { return x[2 + i]; }
  Number rate() const { return x.drop_back().back(); }
  Number count() const { return x.back(); }
  /// The gradient with that of the L2 norm.
  Number gradient() const { return node.real("norm_coefficient", 0) * x[0] + x[1]; }
};
} // namespace

using TermsFormula = llvm::function_ref<Number(const Terms &)>;

/// Results of an optimizer with `memories` tensors for a parameter: one for each formula, the next parameter first.
static LogicalResult lowerOptimizer(Node &node, ArrayRef<TermsFormula> formulas) {
  unsigned memories = formulas.size() - 1, kinds = formulas.size() + 1, fixed = 2;
  unsigned given = node.op->getNumOperands() - fixed, count = given / kinds;
  if (given % kinds != 0 || node.op->getNumResults() != count * formulas.size())
    return node.fail() << "expected a learning rate, an update count, and for each parameter a gradient and "
                       << memories << " more tensors, but got " << given << " tensors and " << node.op->getNumResults()
                       << " results";
  for (unsigned i = 0; i < count; ++i) {
    SmallVector<unsigned> inputs;
    for (unsigned kind = 0; kind < kinds; ++kind)
      inputs.push_back(fixed + kind * count + i);
    inputs.append({0, 1});
    for (auto [result, formula] : llvm::enumerate(formulas)) {
      unsigned place = result * count + i;
      node.set(place, computeElementwise(node, inputs, node.declared(inputs.front()),
                                         [&](ArrayRef<Number> x) { return formula({node, x}); }));
    }
  }
  return mlir::success();
}

static LogicalResult lowerAdagrad(Node &node) {
  auto nextSquares = [](const Terms &t) { return t.memory(0) + t.gradient() * t.gradient(); };
  auto nextParameter = [&](const Terms &t) {
    Number rate = t.rate() / (1.0 + t.count() * t.node.real("decay_factor", 0));
    return t.parameter() - rate * t.gradient() / (sqrt(nextSquares(t)) + t.node.real("epsilon", 1e-6));
  };
  return lowerOptimizer(node, {nextParameter, nextSquares});
}

static LogicalResult lowerAdam(Node &node) {
  double alpha = node.real("alpha", 0.9), beta = node.real("beta", 0.999);
  auto nextMean = [&](const Terms &t) { return alpha * t.memory(0) + (1 - alpha) * t.gradient(); };
  auto nextSquares = [&](const Terms &t) { return beta * t.memory(1) + (1 - beta) * t.gradient() * t.gradient(); };
  auto nextParameter = [&](const Terms &t) {
    Number rate = t.rate(), count = t.count();
    Number corrected = rate * sqrt(1.0 - pow(rate.with(beta), count)) / (1.0 - pow(rate.with(alpha), count));
    Number step =
        select(count > 0, corrected, rate) * nextMean(t) / (sqrt(nextSquares(t)) + t.node.real("epsilon", 1e-6));
    return (1 - t.node.real("norm_coefficient_post", 0)) * (t.parameter() - step);
  };
  return lowerOptimizer(node, {nextParameter, nextMean, nextSquares});
}

static LogicalResult lowerMomentum(Node &node) {
  double alpha = node.real("alpha"), beta = node.real("beta");
  StringRef mode = node.string("mode");
  if (mode != "standard" && mode != "nesterov")
    return node.fail() << "unsupported mode '" << mode << "'; supported: standard, nesterov";
  auto nextMomentum = [&](const Terms &t) {
    Number gradient = t.gradient();
    return alpha * t.memory(0) + select(t.count() > 0, gradient * beta, gradient);
  };
  auto nextParameter = [&](const Terms &t) {
    Number momentum = nextMomentum(t);
    return t.parameter() - t.rate() * (mode == "nesterov" ? t.gradient() + alpha * momentum : momentum);
  };
  return lowerOptimizer(node, {nextParameter, nextMomentum});
}

/// Stays the same operation, of lowered values.
static LogicalResult lowerGradient(Node &node) {
  auto names = node.op->getAttrOfType<mlir::ArrayAttr>("xs");
  unsigned count = names ? names.size() : 0;
  if (count == 0 || count >= node.inputs() || node.results() > count)
    return node.fail() << "expected an input for each name in xs and zs and no more outputs than names in xs";
  mlir::OperationState state(node.op->getLoc(), onnxir::kGradientName);
  state.addAttributes(node.op->getAttrs());
  for (unsigned i = 0; i < node.inputs(); ++i) {
    Type element = node.element(i);
    bool isRead = i < count || i + 1 == node.inputs();
    if (isRead && !element.isF32() && !element.isF64())
      return node.fail() << "unsupported type " << node.type(i) << "; supported: tensors of f32 and f64";
    state.addOperands(node.in(i));
    if (i < node.results())
      state.addTypes(node.in(i).getType());
  }
  Operation *gradients = node.b.create(state);
  for (unsigned i = 0; i < node.results(); ++i)
    node.set(i, gradients->getResult(i));
  return mlir::success();
}

void addOptimizerLowerings(LoweringTable &table) {
  table["onnx.ai.onnx.preview.training.Adagrad"] = lowerAdagrad;
  table["onnx.ai.onnx.preview.training.Adam"] = lowerAdam;
  table["onnx.ai.onnx.preview.training.Gradient"] = lowerGradient;
  table["onnx.ai.onnx.preview.training.Momentum"] = lowerMomentum;
}

} // namespace hone::lowering
