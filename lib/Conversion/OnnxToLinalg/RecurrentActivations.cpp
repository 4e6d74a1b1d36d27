// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of activations, and which of them a layer has.

#include "RecurrentActivations.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// An activation function with what its parameters are where the node gives none (NaN: it takes none).
struct ActivationRow {
  double alpha, beta;
  Number (*apply)(Number x, double alpha, double beta);
};

} // namespace

static const llvm::StringMap<ActivationRow> &getActivationTable() {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  static const llvm::StringMap<ActivationRow> table = {
      {"relu", {kNone, kNone, [](Number x, double, double) { return max(x, x.with(0)); }}},
      {"tanh", {kNone, kNone, [](Number x, double, double) { return tanh(x); }}},
      {"sigmoid", {kNone, kNone, [](Number x, double, double) { return sigmoid(x); }}},
      {"softsign", {kNone, kNone, [](Number x, double, double) { return x / (1.0 + abs(x)); }}},
      {"softplus", {kNone, kNone, [](Number x, double, double) { return softplus(x); }}},
      {"affine", {1.0, 0.0, [](Number x, double a, double b) { return a * x + b; }}},
      {"leakyrelu", {0.01, kNone, [](Number x, double a, double) { return select(x < 0.0, a * x, x); }}},
      {"thresholdedrelu", {1.0, kNone, [](Number x, double a, double) { return select(x > a, x, x.with(0)); }}},
      {"scaledtanh", {1.0, 1.0, [](Number x, double a, double b) { return a * tanh(b * x); }}},
      {"hardsigmoid",
       {0.2, 0.5, [](Number x, double a, double b) { return max(min(a * x + b, x.with(1)), x.with(0)); }}},
      {"elu", {1.0, kNone, [](Number x, double a, double) { return select(x < 0.0, a * expm1(x), x); }}},
  };
  return table;
}

/// Names of all directions, or the operator's own.
static SmallVector<std::string> getActivationNames(Node &node, unsigned count, int64_t directions) {
  SmallVector<std::string> names;
  if (auto given = node.op->getAttrOfType<ArrayAttr>("activations"))
    for (Attribute name : given)
      names.push_back(cast<StringAttr>(name).getValue().lower());
  if (!names.empty())
    return names;
  for (int64_t d = 0; d < directions; ++d)
    for (unsigned i = 0; i < count; ++i)
      names.push_back(count > 1 && i == 0 ? "sigmoid" : "tanh");
  return names;
}

/// Parameters are listed once for every activation that takes them, in order.
FailureOr<SmallVector<RecurrentActivation>> getRecurrentActivations(Node &node, unsigned count, int64_t direction) {
  int64_t directions = node.string("direction", "forward") == "bidirectional" ? 2 : 1;
  SmallVector<std::string> names = getActivationNames(node, count, directions);
  if (names.size() != static_cast<size_t>(count * directions)) {
    node.fail() << "expected " << count * directions << " activations, but got " << names.size();
    return failure();
  }
  auto alphas = node.reals("activation_alpha").value_or(SmallVector<float>());
  auto betas = node.reals("activation_beta").value_or(SmallVector<float>());
  size_t nextAlpha = 0, nextBeta = 0;
  auto take = [](ArrayRef<float> values, size_t &next, double otherwise) -> double {
    return std::isnan(otherwise) || next >= values.size() ? otherwise : values[next++];
  };
  SmallVector<RecurrentActivation> all;
  for (const std::string &name : names) {
    auto row = getActivationTable().find(name);
    if (row == getActivationTable().end()) {
      node.fail() << "unsupported activation '" << name << "'";
      return failure();
    }
    double alpha = take(alphas, nextAlpha, row->second.alpha), beta = take(betas, nextBeta, row->second.beta);
    all.push_back([apply = row->second.apply, alpha, beta](Number x) { return apply(x, alpha, beta); });
  }
  return SmallVector<RecurrentActivation>(ArrayRef(all).slice(direction * count, count));
}

} // namespace hone::lowering
