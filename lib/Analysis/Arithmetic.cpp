// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selections and floating-point arithmetic of expressions. Functions of selected constants become selections of constants,
// so that every way to spell an additive mask ends as one selection.

#include "hone/Analysis/Expressions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <limits>

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

namespace hone::analysis {

/// No 64-bit integer, converted to a float, reaches this; added to a float of this size it is lost to rounding.
static constexpr double kBeyondIntegers = 1e30;

const Expression *Expressions::select(const Expression *condition, const Expression *a, const Expression *b) {
  if (a == b || condition->kind == ExpressionKind::True)
    return a;
  if (condition->kind == ExpressionKind::False)
    return b;
  if (a->isFlag() && b->isFlag())
    return disjoin({conjoin({condition, a}), conjoin({negate(condition), b})});
  // Selections that share a value with the one inside them become one.
  if (a->kind == ExpressionKind::Select) {
    if (a->operands[2] == b)
      return select(conjoin({condition, a->operands[0]}), a->operands[1], b);
    if (a->operands[1] == b)
      return select(conjoin({condition, negate(a->operands[0])}), a->operands[2], b);
  }
  if (b->kind == ExpressionKind::Select) {
    if (b->operands[1] == a)
      return select(disjoin({condition, b->operands[0]}), a, b->operands[2]);
    if (b->operands[2] == a)
      return select(disjoin({condition, negate(b->operands[0])}), a, b->operands[1]);
  }
  // Of two constants the larger one comes first.
  if (a->kind == ExpressionKind::Real && b->kind == ExpressionKind::Real && a->real < b->real)
    return select(negate(condition), b, a);
  Expression result;
  result.kind = ExpressionKind::Select;
  result.operands = {condition, a, b};
  return intern(std::move(result));
}

Polynomial Expressions::toInteger(const Expression *value) {
  if (value->kind == ExpressionKind::Integer)
    return value->polynomial;
  if (value->kind == ExpressionKind::True || value->kind == ExpressionKind::False)
    return value->kind == ExpressionKind::True;
  if (value->kind == ExpressionKind::Real && std::abs(value->real) < 9e18)
    return static_cast<int64_t>(value->real);
  return atomOf(value, value->isFlag(), value->isFlag() ? std::optional<Polynomial>(1) : std::nullopt);
}

const Expression *Expressions::toFlag(const Expression *value) {
  if (value->isFlag())
    return value;
  if (value->kind == ExpressionKind::Integer)
    return negate(isZero(value->polynomial));
  return negate(equal(value, real(0)));
}

const Expression *Expressions::toReal(const Expression *value) {
  if (value->isFlag())
    return select(value, real(1), real(0));
  if (value->kind != ExpressionKind::Integer)
    return value;
  if (auto constant = value->polynomial.getConstant())
    return real(static_cast<double>(*constant));
  if (auto atom = value->polynomial.getAtom(); atom && atoms[*atom].definition && atoms[*atom].definition->isFlag())
    return toReal(atoms[*atom].definition);
  return call("ToReal", {value});
}

std::optional<double> Expressions::evaluate(StringRef op, ArrayRef<double> x) const {
  bool divides = op == "Div" || op == "Reciprocal" || op == "Pow";
  if (divides && llvm::is_contained(x.size() == 1 ? x : op == "Pow" ? x.take_front() : x.drop_front(), 0.0))
    return std::nullopt; // the sign of a zero is not kept
  if (x.size() == 1) {
    using Function = double (*)(double);
    Function function = llvm::StringSwitch<Function>(op)
                            .Case("Neg", [](double a) { return -a; })
                            .Case("Abs", [](double a) { return std::abs(a); })
                            .Case("Sqrt", [](double a) { return std::sqrt(a); })
                            .Case("Exp", [](double a) { return std::exp(a); })
                            .Case("Log", [](double a) { return std::log(a); })
                            .Case("Tanh", [](double a) { return std::tanh(a); })
                            .Case("Floor", [](double a) { return std::floor(a); })
                            .Case("Reciprocal", [](double a) { return 1 / a; })
                            .Default(nullptr);
    return function ? std::optional<double>(function(x[0])) : std::nullopt;
  }
  if (x.size() != 2)
    return std::nullopt;
  if (op == "Pow")
    return std::pow(x[0], x[1]);
  using Function = double (*)(double, double);
  Function function = llvm::StringSwitch<Function>(op)
                          .Case("Add", [](double a, double b) { return a + b; })
                          .Case("Sub", [](double a, double b) { return a - b; })
                          .Case("Mul", [](double a, double b) { return a * b; })
                          .Case("Div", [](double a, double b) { return a / b; })
                          .Case("Max", [](double a, double b) { return a < b ? b : a; })
                          .Case("Min", [](double a, double b) { return b < a ? b : a; })
                          .Default(nullptr);
  return function ? std::optional<double>(function(x[0], x[1])) : std::nullopt;
}

static bool isSelectOfReals(const Expression *e) {
  return e->kind == ExpressionKind::Select && e->operands[1]->kind == ExpressionKind::Real &&
         e->operands[2]->kind == ExpressionKind::Real;
}

const Expression *Expressions::arithmetic(StringRef op, ArrayRef<const Expression *> given) {
  SmallVector<const Expression *> operands;
  for (const Expression *operand : given)
    operands.push_back(toReal(operand));
  if (llvm::all_of(operands, [](const Expression *e) { return e->kind == ExpressionKind::Real; })) {
    SmallVector<double> values;
    for (const Expression *operand : operands)
      values.push_back(operand->real);
    if (auto value = evaluate(op, values))
      return real(*value);
  }
  if (operands.size() == 2) {
    if ((op == "Add" || op == "Mul") && operands[0]->number > operands[1]->number)
      std::swap(operands[0], operands[1]);
    const Expression *a = operands[0], *b = operands[1];
    if (op == "Add" && a->isReal(0))
      return b;
    if ((op == "Add" || op == "Sub") && b->isReal(0))
      return a;
    if (op == "Mul" && a->isReal(1))
      return b;
    if ((op == "Mul" || op == "Div") && b->isReal(1))
      return a;
    if (op == "Add" || op == "Sub") // a huge constant swallows any integer
      for (auto [huge, other] : {std::pair(a, b), std::pair(b, a)})
        if (huge->kind == ExpressionKind::Real && std::abs(huge->real) >= kBeyondIntegers && other->isCall("ToReal"))
          return huge == b && op == "Sub" ? real(-huge->real) : huge;
  }
  // Into a selection of constants: f(select(c, x, y), z) is select(c, f(x, z), f(y, z)). The values of z must be such that
  // the result is again made of few terms.
  for (auto [position, operand] : llvm::enumerate(operands)) {
    if (!isSelectOfReals(operand))
      continue;
    bool simple = llvm::all_of(operands, [&](const Expression *e) {
      return e == operand || e->kind == ExpressionKind::Real || isSelectOfReals(e) || e->isCall("ToReal");
    });
    if (!simple)
      continue;
    SmallVector<const Expression *> branches;
    for (unsigned branch : {1u, 2u}) {
      SmallVector<const Expression *> arguments(operands);
      arguments[position] = operand->operands[branch];
      branches.push_back(arithmetic(op, arguments));
    }
    return select(operand->operands[0], branches[0], branches[1]);
  }
  return call(op, operands);
}

const Expression *Expressions::equal(const Expression *a, const Expression *b) {
  if (a->kind == ExpressionKind::Integer && b->kind == ExpressionKind::Integer)
    return isZero(a->polynomial - b->polynomial);
  if (a->isFlag() && b->isFlag())
    return disjoin({conjoin({a, b}), conjoin({negate(a), negate(b)})});
  a = toReal(a), b = toReal(b);
  if (a->kind == ExpressionKind::Real && b->kind == ExpressionKind::Real)
    return flag(a->real == b->real);
  if (a->kind == ExpressionKind::Real)
    std::swap(a, b);
  if (a->kind == ExpressionKind::Select)
    return select(a->operands[0], equal(a->operands[1], b), equal(a->operands[2], b));
  if (a->isCall("ToReal") && b->kind == ExpressionKind::Real) {
    if (std::abs(b->real) >= kBeyondIntegers || b->real != std::floor(b->real))
      return flag(false);
    if (std::abs(b->real) < 1 << 24) // exactly representable, and no other integer rounds to it
      return isZero(a->operands[0]->polynomial - static_cast<int64_t>(b->real));
  }
  return callFlag("Equal", {a, b});
}

const Expression *Expressions::less(const Expression *a, const Expression *b) {
  if (a->kind == ExpressionKind::Integer && b->kind == ExpressionKind::Integer)
    return nonNegative(b->polynomial - a->polynomial - 1);
  a = toReal(a), b = toReal(b);
  if (a->kind == ExpressionKind::Real && b->kind == ExpressionKind::Real)
    return flag(a->real < b->real);
  if (isSelectOfReals(a))
    return select(a->operands[0], less(a->operands[1], b), less(a->operands[2], b));
  if (isSelectOfReals(b))
    return select(b->operands[0], less(a, b->operands[1]), less(a, b->operands[2]));
  return callFlag("Less", {a, b});
}

} // namespace hone::analysis
