// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activations: one formula an operator, as ONNX and com.microsoft document it.

#include "Formula.h"

#include <numbers>

using namespace mlir;

namespace hone::lowering {

static Number zeroOf(Number x) { return x.with(0); }

static Number relu(Number x) { return max(x, zeroOf(x)); }

/// Gaussian error linear unit: x Φ(x).
static Number gelu(Number x) { return 0.5 * x * (1.0 + erf(x * std::numbers::sqrt2_v<double> * 0.5)); }

/// Its approximation by tanh (Hendrycks and Gimpel, 2016, section 2).
static Number tanhGelu(Number x) {
  double scale = std::sqrt(2.0 / std::numbers::pi);
  return 0.5 * x * (1.0 + tanh(scale * (x + 0.044715 * x * x * x)));
}

static Number swish(Number x, double alpha) { return x * sigmoid(x * alpha); }

static Number clampToUnit(Number x) { return max(zeroOf(x), min(x.with(1), x)); }

static Number hardSwish(Number x) { return x * clampToUnit(x / 6.0 + 0.5); }

//===----------------------------------------------------------------------===//
// One input
//===----------------------------------------------------------------------===//

static Number leakyRelu(Number x, Node &node) { return select(x < 0.0, x * node.real("alpha", 0.01), x); }

static Number elu(Number x, Node &node) { return select(x < 0.0, node.real("alpha", 1) * expm1(x), x); }

static Number selu(Number x, Node &node) {
  double alpha = node.real("alpha", 1.67326319), gamma = node.real("gamma", 1.05070102);
  return gamma * select(x > 0.0, x, alpha * expm1(x));
}

static Number celu(Number x, Node &node) {
  double alpha = node.real("alpha", 1);
  return relu(x) + min(zeroOf(x), alpha * expm1(x / alpha));
}

static Number hardSigmoid(Number x, Node &node) {
  return clampToUnit(node.real("alpha", 0.2) * x + node.real("beta", 0.5));
}

static Number thresholdedRelu(Number x, Node &node) { return select(x > node.real("alpha", 1), x, zeroOf(x)); }

static Number softsign(Number x, Node &) { return x / (1.0 + abs(x)); }

static Number mish(Number x, Node &) { return x * tanh(softplus(x)); }

static Number shrink(Number x, Node &node) {
  double bias = node.real("bias", 0), lambda = node.real("lambd", 0.5);
  return select(x < -lambda, x + bias, select(x > lambda, x - bias, zeroOf(x)));
}

static LogicalResult lowerGelu(Node &node) {
  StringRef approximate = node.string("approximate", "none");
  if (approximate == "tanh")
    return lowerFormula<[](Number x, Node &) { return tanhGelu(x); }>(node);
  if (approximate == "none")
    return lowerFormula<[](Number x, Node &) { return gelu(x); }>(node);
  return node.fail() << "unsupported 'approximate' '" << approximate << "'; supported: none, tanh";
}

/// Integers have Relu since opset 14, and Shrink always.
static LogicalResult lowerInteger(Node &node, LogicalResult (*floats)(Node &),
                                  llvm::function_ref<Value(Builder &, Value)> body) {
  if (isa<FloatType>(node.element(0)))
    return floats(node);
  node.set(0, node.elementwise({node.in(0)}, node.element(0), [&](Builder &b, ValueRange x) { return body(b, x[0]); }));
  return success();
}

static LogicalResult lowerRelu(Node &node) {
  return lowerInteger(node, lowerFormula<[](Number x, Node &) { return relu(x); }>, [](Builder &b, Value x) -> Value {
    return arith::MaxSIOp::create(b, x, arith::ConstantOp::create(b, b.getZeroAttr(x.getType())));
  });
}

/// Integers are computed in f64, which the bounds and the bias are given in.
static LogicalResult lowerShrink(Node &node) {
  Type declared = node.declared(0);
  return lowerInteger(node, lowerFormula<shrink>, [&](Builder &b, Value x) -> Value {
    Number number{&b, convertScalar(b, x, declared, b.getF64Type())};
    return convertScalar(b, shrink(number, node).value, b.getF64Type(), declared);
  });
}

//===----------------------------------------------------------------------===//
// Two inputs
//===----------------------------------------------------------------------===//

static LogicalResult lowerSwiGlu(Node &node) {
  double alpha = node.real("alpha", 1);
  node.set(0, computeElementwise(node, {0, 1}, node.declared(0),
                                 [&](ArrayRef<Number> x) { return swish(x[0], alpha) * x[1]; }));
  return success();
}

/// An activation of the sum of the input and a bias, which may be absent.
template <Number (*activation)(Number)>
static LogicalResult lowerBiased(Node &node) {
  SmallVector<unsigned> inputs{0};
  if (node.has(1))
    inputs.push_back(1);
  node.set(0, computeElementwise(node, inputs, node.declared(0),
                                 [](ArrayRef<Number> x) { return activation(x.size() > 1 ? x[0] + x[1] : x[0]); }));
  return success();
}

void addActivationLowerings(LoweringTable &table) {
  table["onnx.Celu"] = lowerFormula<celu>;
  table["onnx.Elu"] = lowerFormula<elu>;
  table["onnx.Gelu"] = lowerGelu;
  table["onnx.HardSigmoid"] = lowerFormula<hardSigmoid>;
  table["onnx.HardSwish"] = lowerFormula<[](Number x, Node &) { return hardSwish(x); }>;
  table["onnx.LeakyRelu"] = lowerFormula<leakyRelu>;
  table["onnx.Mish"] = lowerFormula<mish>;
  table["onnx.Relu"] = lowerRelu;
  table["onnx.Selu"] = lowerFormula<selu>;
  table["onnx.Shrink"] = lowerShrink;
  table["onnx.Sigmoid"] = lowerFormula<[](Number x, Node &) { return sigmoid(x); }>;
  table["onnx.Softplus"] = lowerFormula<[](Number x, Node &) { return softplus(x); }>;
  table["onnx.Softsign"] = lowerFormula<softsign>;
  table["onnx.SwiGLU"] = lowerSwiGlu;
  table["onnx.Swish"] = lowerFormula<[](Number x, Node &node) { return swish(x, node.real("alpha", 1)); }>;
  table["onnx.ThresholdedRelu"] = lowerFormula<thresholdedRelu>;
  table["onnx.com.microsoft.BiasGelu"] = lowerBiased<gelu>;
  table["onnx.com.microsoft.FastGelu"] = lowerBiased<tanhGelu>;
  table["onnx.com.microsoft.Gelu"] = lowerBiased<gelu>;
  table["onnx.com.microsoft.QuickGelu"] =
      lowerFormula<[](Number x, Node &node) { return swish(x, node.real("alpha", 1.702)); }>;
}

} // namespace hone::lowering
