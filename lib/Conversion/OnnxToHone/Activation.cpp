// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Evaluates a tree of element-wise operators at points and compares it with the activations that the dialect names.

#include "Activation.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace hone::raising {

static double silu(double x) { return x / (1 + std::exp(-x)); }
static double gelu(double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); }
static double geluTanh(double x) {
  double c = std::sqrt(2 / std::numbers::pi);
  return x / 2 * (1 + std::tanh(c * (x + 0.044715 * x * x * x)));
}
static double relu(double x) { return x > 0 ? x : 0; }

namespace {

class ActivationTree {
public:
  explicit ActivationTree(SymbolicAnalysis &analysis) : analysis(analysis) {}

  /// Finds the one tensor that the tree reads; false if there is none or another one.
  bool findSource(Value value, unsigned depth = 0);
  /// Value of the tree where its source is `x`; NaN where an operator is not known.
  double evaluate(Value value, double x);

  Value source;
  bool hasOperators = false;

private:
  static bool isElementwise(Operation *op);
  double evaluateOperator(Operation *op, ArrayRef<double> x);

  SymbolicAnalysis &analysis;
};

} // namespace

bool ActivationTree::isElementwise(Operation *op) {
  static const StringRef names[] = {"Add",  "Sub", "Mul",  "Div", "Pow",  "Neg",   "Sigmoid", "Erf",
                                    "Tanh", "Exp", "Relu", "Max", "Gelu", "Swish", "Sqrt",    "Reciprocal"};
  if (!op || !onnxir::isOnnxOp(op))
    return false;
  StringRef domain = onnxir::getDomain(op);
  if (domain == kMicrosoft)
    return isOp(op, "Gelu", kMicrosoft) || isOp(op, "QuickGelu", kMicrosoft) ||
           (isOp(op, "FastGelu", kMicrosoft) && !getOperand(op, 1));
  return domain.empty() && llvm::is_contained(names, onnxir::getOpType(op));
}

bool ActivationTree::findSource(Value value, unsigned depth) {
  constexpr unsigned kMaxDepth = 16;
  value = skipCasts(value);
  if (analysis.getSplat(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (isElementwise(op) && value != source && depth < kMaxDepth) {
    hasOperators = true;
    return llvm::all_of(op->getOperands(), [&](Value operand) { return findSource(operand, depth + 1); });
  }
  if (source && source != value)
    return false;
  source = value;
  return true;
}

double ActivationTree::evaluateOperator(Operation *op, ArrayRef<double> x) {
  StringRef name = onnxir::getOpType(op);
  if (name == "Gelu" && onnxir::getDomain(op).empty()) {
    auto approximate = op->getAttrOfType<StringAttr>("approximate");
    return approximate && approximate == "tanh" ? geluTanh(x[0]) : gelu(x[0]);
  }
  if (name == "QuickGelu" || name == "Swish")
    return x[0] / (1 + std::exp(-getReal(op, "alpha", name == "Swish" ? 1 : 1.702) * x[0]));
  if (x.size() == 1) {
    using Function = double (*)(double);
    Function function = llvm::StringSwitch<Function>(name)
                            .Case("Neg", [](double a) { return -a; })
                            .Case("Sigmoid", [](double a) { return 1 / (1 + std::exp(-a)); })
                            .Case("Erf", [](double a) { return std::erf(a); })
                            .Case("Tanh", [](double a) { return std::tanh(a); })
                            .Case("Exp", [](double a) { return std::exp(a); })
                            .Case("Sqrt", [](double a) { return std::sqrt(a); })
                            .Case("Reciprocal", [](double a) { return 1 / a; })
                            .Case("Relu", relu)
                            .Case("Gelu", gelu)
                            .Case("FastGelu", geluTanh)
                            .Default(nullptr);
    return function ? function(x[0]) : std::nan("");
  }
  if (x.size() != 2)
    return std::nan("");
  using Function = double (*)(double, double);
  Function function = llvm::StringSwitch<Function>(name)
                          .Case("Add", [](double a, double b) { return a + b; })
                          .Case("Sub", [](double a, double b) { return a - b; })
                          .Case("Mul", [](double a, double b) { return a * b; })
                          .Case("Div", [](double a, double b) { return a / b; })
                          .Case("Pow", [](double a, double b) { return std::pow(a, b); })
                          .Case("Max", [](double a, double b) { return a < b ? b : a; })
                          .Default(nullptr);
  return function ? function(x[0], x[1]) : std::nan("");
}

double ActivationTree::evaluate(Value value, double x) {
  value = skipCasts(value);
  if (value == source)
    return x;
  if (auto constant = analysis.getSplat(value))
    return *constant;
  Operation *op = value.getDefiningOp();
  SmallVector<double> operands;
  for (Value operand : op->getOperands())
    if (!onnxir::isAbsent(operand))
      operands.push_back(evaluate(operand, x));
  return evaluateOperator(op, operands);
}

std::optional<MatchedActivation> matchActivation(Value value, SymbolicAnalysis &analysis) {
  value = skipCasts(value);
  // Operators that add a bias first.
  for (auto [name, kind] : {std::pair("BiasGelu", Activation::Gelu), std::pair("FastGelu", Activation::GeluTanh)})
    if (Operation *op = getDefiningOp(value, name, kMicrosoft);
        op && getOperand(op, 1) && getRank(op->getOperand(1)) == 1)
      return MatchedActivation{kind, skipCasts(op->getOperand(0)), op->getOperand(1)};
  ActivationTree tree(analysis);
  if (!tree.findSource(value) || !tree.source || !tree.hasOperators)
    return std::nullopt;
  auto type = dyn_cast<TensorType>(tree.source.getType());
  bool isHalf = type && type.getElementType().isF16();
  using Function = double (*)(double);
  static const std::pair<Activation, Function> known[] = {
      {Activation::Silu, silu}, {Activation::Gelu, gelu}, {Activation::GeluTanh, geluTanh}, {Activation::Relu, relu}};
  for (auto [kind, function] : known) {
    // Gelu and its approximation differ by 5e-4 at 2; constants in files are rounded to f32, or to f16 where x is.
    constexpr double kReach = 8, kStep = 0.3125;
    const double tolerance = isHalf ? 8e-5 : 2e-6;
    bool same = true;
    for (double x = -kReach; x <= kReach && same; x += kStep)
      same = std::abs(tree.evaluate(value, x) - function(x)) <= tolerance * (1 + std::abs(x));
    if (same)
      return MatchedActivation{kind, tree.source, {}};
  }
  return std::nullopt;
}

} // namespace hone::raising
