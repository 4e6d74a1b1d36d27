// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each of them is x times a gate between 0 and 1, in the forms that models write: with factors before, between and after.

#include "ScalarActivation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace hone {

namespace {

/// The numbers of signatures.def.
enum : int64_t { kSilu = 2, kGelu = 3, kHardSwish = 5 };

/// scale · base + shift.
struct Affine {
  double scale, shift;
  Value base;
};

} // namespace

static std::optional<double> getConstant(Value value) {
  APFloat number(0.0f);
  return matchPattern(value, m_ConstantFloat(&number)) ? std::optional(number.convertToDouble()) : std::nullopt;
}

/// Constants are f32.
static bool isAbout(double value, double wanted) { return std::abs(value - wanted) <= 1e-6 * (1 + std::abs(wanted)); }

/// `value` as far as it is sums and products with constants.
static Affine peel(Value value) {
  Affine affine{1, 0, value};
  while (Operation *op = affine.base.getDefiningOp()) {
    if (op->getNumOperands() != 2 || !isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp>(op))
      break;
    auto left = getConstant(op->getOperand(0)), right = getConstant(op->getOperand(1));
    if (isa<arith::AddFOp, arith::MulFOp>(op) && left && !right)
      std::swap(left, right);
    else if (left || !right)
      break;
    Value base = op->getOperand(getConstant(op->getOperand(0)) ? 1 : 0);
    if (isa<arith::AddFOp>(op))
      affine.shift += affine.scale * *right;
    else if (isa<arith::SubFOp>(op))
      affine.shift -= affine.scale * *right;
    else
      affine.scale *= isa<arith::MulFOp>(op) ? *right : 1 / *right;
    affine.base = base;
  }
  return affine;
}

/// The factor before a hard sigmoid of x: c for c · min(max(x / 6 + 1/2, 0), 1).
static std::optional<double> matchHardSigmoid(Value value, Value x) {
  double least = -INFINITY, most = INFINITY;
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::MaximumFOp, arith::MinimumFOp>(op))
      break;
    bool isFirst = getConstant(op->getOperand(0)).has_value();
    auto bound = getConstant(op->getOperand(isFirst ? 0 : 1));
    if (!bound)
      return std::nullopt;
    (isa<arith::MaximumFOp>(op) ? least : most) = *bound;
    value = op->getOperand(isFirst ? 1 : 0);
  }
  Affine line = peel(value);
  bool isLine = line.base == x && least == 0 && most > 0 && std::isfinite(most) &&
                isAbout(line.scale / most, 1.0 / 6) && isAbout(line.shift / most, 0.5);
  return isLine ? std::optional(most) : std::nullopt;
}

/// Whether it is 1 / (1 + e^-x).
static bool isSigmoid(Value value, Value x) {
  auto quotient = value.getDefiningOp<arith::DivFOp>();
  if (!quotient || getConstant(quotient.getLhs()) != 1.0)
    return false;
  Affine sum = peel(quotient.getRhs());
  auto power = sum.base.getDefiningOp<math::ExpOp>();
  auto negative = power ? power.getOperand().getDefiningOp<arith::NegFOp>() : arith::NegFOp();
  return sum.scale == 1 && sum.shift == 1 && negative && negative.getOperand() == x;
}

/// The factor before 1 + erf(x / √2).
static std::optional<double> matchErf(Value value, Value x) {
  Affine sum = peel(value);
  auto erf = sum.base.getDefiningOp<math::ErfOp>();
  if (!erf || sum.scale != sum.shift)
    return std::nullopt;
  Affine inside = peel(erf.getOperand());
  bool isScaled = inside.base == x && inside.shift == 0 && isAbout(inside.scale, std::sqrt(0.5));
  return isScaled ? std::optional(sum.scale) : std::nullopt;
}

std::optional<ScalarActivation> ScalarActivation::match(Value result, Value x) {
  Affine outer = peel(result);
  auto product = outer.base.getDefiningOp<arith::MulFOp>();
  if (!product)
    return std::nullopt;
  for (unsigned number : {0u, 1u}) {
    // A factor may stand with x as well.
    Affine linear = peel(product->getOperand(number));
    Value gate = product->getOperand(1 - number);
    if (linear.base != x || linear.shift != 0)
      continue;
    double scale = outer.scale * linear.scale;
    if (auto factor = matchHardSigmoid(gate, x))
      return ScalarActivation{kHardSwish, scale * *factor, outer.shift};
    if (auto factor = matchErf(gate, x))
      return ScalarActivation{kGelu, 2 * scale * *factor, outer.shift};
    if (isSigmoid(gate, x))
      return ScalarActivation{kSilu, scale, outer.shift};
  }
  return std::nullopt;
}

} // namespace hone
