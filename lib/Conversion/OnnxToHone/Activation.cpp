// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Evaluates a tree of element-wise operators at points and compares it with the activations that the dialect names.

#include "Activation.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <limits>
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
  /// A tree over `count` tensors.
  ActivationTree(SymbolicAnalysis &analysis, size_t count) : analysis(analysis), count(count) {}

  /// Finds the tensors that the tree reads; false if there are more.
  bool findSources(Value value, unsigned depth = 0);
  /// Value of the tree where its sources are `x`; NaN where an operator is not known.
  double evaluate(Value value, ArrayRef<double> x);

  SmallVector<Value, 2> sources;
  SmallVector<double> constants; // that the tree reads
  bool hasOperators = false;

private:
  static bool isElementwise(Operation *op);
  double evaluateOperator(Operation *op, ArrayRef<double> x);

  SymbolicAnalysis &analysis;
  size_t count;
};

} // namespace

bool ActivationTree::isElementwise(Operation *op) {
  static const StringRef names[] = {"Add", "Sub",  "Mul", "Div", "Pow",  "Neg",  "Sigmoid", "Erf",  "Tanh",
                                    "Exp", "Relu", "Max", "Min", "Clip", "Gelu", "Swish",   "Sqrt", "Reciprocal"};
  if (!op || !onnxir::isOnnxOp(op))
    return false;
  StringRef domain = onnxir::getDomain(op);
  if (domain == kMicrosoft)
    return isOp(op, "Gelu", kMicrosoft) || isOp(op, "QuickGelu", kMicrosoft) ||
           (isOp(op, "FastGelu", kMicrosoft) && !getOperand(op, 1));
  return domain.empty() && llvm::is_contained(names, onnxir::getOpType(op));
}

bool ActivationTree::findSources(Value value, unsigned depth) {
  constexpr unsigned kMaxDepth = 16;
  value = skipCasts(value);
  if (onnxir::isAbsent(value))
    return true;
  if (auto constant = analysis.getSplat(value)) {
    if (!llvm::is_contained(constants, *constant))
      constants.push_back(*constant);
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (isElementwise(op) && !llvm::is_contained(sources, value) && depth < kMaxDepth) {
    hasOperators = true;
    return llvm::all_of(op->getOperands(), [&](Value operand) { return findSources(operand, depth + 1); });
  }
  if (llvm::is_contained(sources, value))
    return true;
  sources.push_back(value);
  return sources.size() <= count;
}

/// The operands of Clip are limits that may be absent.
static double clip(Operation *op, ArrayRef<double> x) {
  unsigned next = 1;
  double result = x[0];
  if (getOperand(op, 1))
    result = std::max(result, x[next++]);
  return getOperand(op, 2) ? std::min(result, x[next]) : result;
}

double ActivationTree::evaluateOperator(Operation *op, ArrayRef<double> x) {
  StringRef name = onnxir::getOpType(op);
  if (name == "Gelu" && onnxir::getDomain(op).empty()) {
    auto approximate = op->getAttrOfType<StringAttr>("approximate");
    return approximate && approximate == "tanh" ? geluTanh(x[0]) : gelu(x[0]);
  }
  if (name == "QuickGelu" || name == "Swish")
    return x[0] / (1 + std::exp(-getReal(op, "alpha", name == "Swish" ? 1 : 1.702) * x[0]));
  if (name == "Clip")
    return clip(op, x);
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
                          .Case("Min", [](double a, double b) { return b < a ? b : a; })
                          .Default(nullptr);
  return function ? function(x[0], x[1]) : std::nan("");
}

double ActivationTree::evaluate(Value value, ArrayRef<double> x) {
  value = skipCasts(value);
  if (auto it = llvm::find(sources, value); it != sources.end())
    return x[it - sources.begin()];
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
  ActivationTree tree(analysis, 1);
  if (!tree.findSources(value) || tree.sources.empty() || !tree.hasOperators)
    return std::nullopt;
  auto type = dyn_cast<TensorType>(tree.sources.front().getType());
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
      same = std::abs(tree.evaluate(value, {x}) - function(x)) <= tolerance * (1 + std::abs(x));
    if (same)
      return MatchedActivation{kind, tree.sources.front(), {}};
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Gates
//===----------------------------------------------------------------------===//

static double swiglu(const Swiglu &constants, double gate, double up) {
  double limit = constants.limit, g = std::min(gate, limit), u = std::max(-limit, std::min(up, limit));
  return g / (1 + std::exp(-constants.alpha * g)) * (u + constants.offset);
}

/// Whether the tree, whose first source is the gate or else its second, is the SwiGLU: at points within the limits and beyond them.
static bool isSwiglu(ActivationTree &tree, Value value, const Swiglu &constants, bool gateIsFirst) {
  constexpr double kTolerance = 2e-6, kReach = 1.5, kSteps = 12;
  double reach = std::isfinite(constants.limit) ? kReach * constants.limit : 8;
  for (double gate = -reach; gate <= reach; gate += 2 * reach / kSteps)
    for (double up = -reach; up <= reach; up += 2 * reach / kSteps) {
      double expected = swiglu(constants, gate, up);
      double x = gateIsFirst ? gate : up, y = gateIsFirst ? up : gate;
      if (!(std::abs(tree.evaluate(value, {x, y}) - expected) <= kTolerance * (1 + std::abs(expected))))
        return false;
    }
  return true;
}

/// The constants of a SwiGLU are among those that its operators read.
static std::optional<MatchedGate> matchSwiglu(Value value, SymbolicAnalysis &analysis) {
  constexpr size_t kMostConstants = 8;
  ActivationTree tree(analysis, 2);
  if (!tree.findSources(value) || tree.sources.size() != 2 || tree.constants.size() > kMostConstants)
    return std::nullopt;
  SmallVector<double> alphas{1}, offsets{0}, limits{std::numeric_limits<double>::infinity()};
  for (double constant : tree.constants) {
    alphas.push_back(constant), offsets.push_back(constant);
    if (constant > 0)
      limits.push_back(constant);
  }
  for (double limit : limits)
    for (double alpha : alphas)
      for (double offset : offsets)
        for (unsigned gate : {0u, 1u}) {
          Swiglu constants{static_cast<float>(alpha), static_cast<float>(offset), static_cast<float>(limit)};
          if (isSwiglu(tree, value, constants, gate == 0))
            return MatchedGate{tree.sources[gate], tree.sources[1 - gate], Activation::Silu, constants};
        }
  return std::nullopt;
}

SmallVector<MatchedGate> matchGates(Value value, SymbolicAnalysis &analysis) {
  SmallVector<MatchedGate> gates;
  value = skipCasts(value);
  if (Operation *product = getDefiningOp(value, "Mul"))
    for (unsigned side : {0u, 1u})
      if (auto activation = matchActivation(product->getOperand(side), analysis); activation && !activation->bias)
        gates.push_back({activation->source, product->getOperand(1 - side), activation->kind, std::nullopt});
  if (auto gate = matchSwiglu(value, analysis))
    gates.push_back(*gate);
  return gates;
}

} // namespace hone::raising
