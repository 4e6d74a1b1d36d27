// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Derivatives of functions of numbers, alone and in the bodies of other operations. At a kink the derivative is that of one of
// the sides: of a maximum that of the first operand, of an absolute value 0 from the right.

#include "Models.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numbers>

using namespace mlir;

namespace hone {

namespace {

/// The derivatives of one operation, of which `y` is the result and `g` the gradient of it.
class ScalarRule {
public:
  using Add = llvm::function_ref<void(unsigned operand, Value gradient)>;
  ScalarRule(LocBuilder &builder, Operation *op, Value g, Add add)
      : b(builder), op(op), y(op->getResult(0)), g(g), add(add) {}

  /// False where the operation has no rule.
  bool build();

private:
  Value x(unsigned operand = 0) const { return op->getOperand(operand); }
  Value number(double value) { return arith::ConstantOp::create(b, b.getFloatAttr(g.getType(), value)); }
  Value mul(Value left, Value right) { return arith::MulFOp::create(b, left, right); }
  Value div(Value left, Value right) { return arith::DivFOp::create(b, left, right); }
  Value plus(Value left, Value right) { return arith::AddFOp::create(b, left, right); }
  Value minus(Value left, Value right) { return arith::SubFOp::create(b, left, right); }
  Value negative(Value value) { return arith::NegFOp::create(b, value); }
  Value square(Value value) { return mul(value, value); }
  Value root(Value value) { return math::SqrtOp::create(b, value); }
  Value where(Value condition, Value then, Value otherwise) {
    return arith::SelectOp::create(b, condition, then, otherwise);
  }
  void addWhere(Value condition, unsigned then, unsigned otherwise) {
    add(then, where(condition, g, number(0)));
    add(otherwise, where(condition, number(0), g));
  }
  bool buildArith();
  bool buildMath();
  void buildPower();

  LocBuilder &b;
  Operation *op;
  Value y, g;
  Add add;
};

} // namespace

bool ScalarRule::buildArith() {
  using Predicate = arith::CmpFPredicate;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<arith::AddFOp>([&](auto) { return add(0, g), add(1, g), true; })
      .Case<arith::SubFOp>([&](auto) { return add(0, g), add(1, negative(g)), true; })
      .Case<arith::MulFOp>([&](auto) { return add(0, mul(g, x(1))), add(1, mul(g, x(0))), true; })
      .Case<arith::DivFOp>([&](auto) {
        Value part = div(g, x(1));
        return add(0, part), add(1, negative(mul(part, y))), true;
      })
      .Case<arith::NegFOp>([&](auto) { return add(0, negative(g)), true; })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>(
          [&](auto) { return addWhere(arith::CmpFOp::create(b, Predicate::OGE, x(0), x(1)), 0, 1), true; })
      .Case<arith::MinimumFOp, arith::MinNumFOp>(
          [&](auto) { return addWhere(arith::CmpFOp::create(b, Predicate::OLE, x(0), x(1)), 0, 1), true; })
      .Case<arith::SelectOp>([&](auto) { return addWhere(x(0), 1, 2), true; })
      .Case<arith::RemFOp>([&](auto) {
        Value whole = math::TruncOp::create(b, div(x(0), x(1)));
        return add(0, g), add(1, negative(mul(g, whole))), true;
      })
      .Case<arith::ExtFOp>([&](auto) { return add(0, arith::TruncFOp::create(b, x().getType(), g)), true; })
      .Case<arith::TruncFOp>([&](auto) { return add(0, arith::ExtFOp::create(b, x().getType(), g)), true; })
      .Default([](Operation *) { return false; });
}

/// Of the base where it is 0, and of the exponent where the base is not positive, what follows from the formulas.
void ScalarRule::buildPower() {
  Value lower = math::PowFOp::create(b, x(0), minus(x(1), number(1)));
  add(0, mul(g, mul(x(1), lower)));
  add(1, mul(g, mul(y, math::LogOp::create(b, x(0)))));
}

bool ScalarRule::buildMath() {
  using namespace math;
  using std::numbers::ln2, std::numbers::ln10, std::numbers::inv_sqrtpi;
  // Each is a factor of g.
  auto factor = [&](Value value) { return add(0, mul(g, value)), true; };
  auto quotient = [&](Value value) { return add(0, div(g, value)), true; };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<ExpOp>([&](auto) { return factor(y); })
      .Case<Exp2Op>([&](auto) { return factor(mul(y, number(ln2))); })
      .Case<ExpM1Op>([&](auto) { return factor(plus(y, number(1))); })
      .Case<LogOp>([&](auto) { return quotient(x()); })
      .Case<Log2Op>([&](auto) { return quotient(mul(x(), number(ln2))); })
      .Case<Log10Op>([&](auto) { return quotient(mul(x(), number(ln10))); })
      .Case<Log1pOp>([&](auto) { return quotient(plus(x(), number(1))); })
      .Case<SqrtOp>([&](auto) { return quotient(mul(y, number(2))); })
      .Case<RsqrtOp>([&](auto) { return factor(mul(number(-0.5), div(y, x()))); })
      .Case<TanhOp>([&](auto) { return factor(minus(number(1), square(y))); })
      .Case<ErfOp>([&](auto) { return factor(mul(number(2 * inv_sqrtpi), ExpOp::create(b, negative(square(x()))))); })
      .Case<SinOp>([&](auto) { return factor(CosOp::create(b, x())); })
      .Case<CosOp>([&](auto) { return factor(negative(SinOp::create(b, x()))); })
      .Case<AtanOp>([&](auto) { return quotient(plus(number(1), square(x()))); })
      .Case<AsinOp>([&](auto) { return quotient(root(minus(number(1), square(x())))); })
      .Case<AcosOp>([&](auto) { return quotient(negative(root(minus(number(1), square(x()))))); })
      .Case<AsinhOp>([&](auto) { return quotient(root(plus(square(x()), number(1)))); })
      .Case<AcoshOp>([&](auto) { return quotient(root(minus(square(x()), number(1)))); })
      .Case<AtanhOp>([&](auto) { return quotient(minus(number(1), square(x()))); })
      .Case<TanOp>([&](auto) { return factor(plus(number(1), square(y))); })
      .Case<SinhOp>([&](auto) { return factor(CoshOp::create(b, x())); })
      .Case<CoshOp>([&](auto) { return factor(SinhOp::create(b, x())); })
      .Case<AbsFOp>([&](auto) {
        Value below = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x(), number(0));
        return add(0, where(below, negative(g), g)), true;
      })
      .Case<FmaOp>([&](auto) { return add(0, mul(g, x(1))), add(1, mul(g, x(0))), add(2, g), true; })
      .Case<PowFOp>([&](auto) { return buildPower(), true; })
      // Steps: flat wherever they have a derivative.
      .Case<CeilOp, FloorOp, RoundOp, RoundEvenOp, TruncOp>([](auto) { return true; })
      .Default([](Operation *) { return false; });
}

bool ScalarRule::build() { return buildArith() || buildMath(); }

LogicalResult buildBodyAdjoints(LocBuilder &builder, ArrayRef<Operation *> ops, const IRMapping &copies,
                                llvm::function_ref<bool(Value)> isActive, llvm::DenseMap<Value, Value> &gradients) {
  auto accumulate = [&](Value value, Value part) {
    Value &gradient = gradients[value];
    gradient = gradient ? arith::AddFOp::create(builder, gradient, part).getResult() : part;
  };
  for (Operation *op : llvm::reverse(ops)) {
    Value gradient = op->getNumResults() == 1 ? gradients.lookup(op->getResult(0)) : Value();
    if (!gradient || !llvm::any_of(op->getOperands(), isActive))
      continue;
    auto add = [&](unsigned operand, Value part) {
      if (isActive(op->getOperand(operand)))
        accumulate(op->getOperand(operand), part);
    };
    if (!ScalarRule(builder, copies.lookup(op->getResult(0)).getDefiningOp(), gradient, add).build())
      return op->emitError() << "cannot differentiate " << op->getName() << ": it has no adjoint";
  }
  return success();
}

namespace {

/// A number that is computed beside tensors.
template <typename Op>
struct ScalarModel : DifferentiableOpInterface::ExternalModel<ScalarModel<Op>, Op> {
  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &builder, Adjoints &adjoints) const {
    Value result = op->getResult(0);
    auto add = [&](unsigned operand, Value part) { adjoints.add(builder, op->getOperand(operand), part); };
    if (isa<FloatType>(result.getType()) && ScalarRule(builder, op, adjoints.get(result), add).build())
      return success();
    return op->emitError() << "cannot differentiate " << op->getName() << " of " << result.getType()
                           << "; supported: numbers";
  }
};

template <typename... Ops>
void attach(MLIRContext *context) {
  (Ops::template attachInterface<ScalarModel<Ops>>(*context), ...);
}

} // namespace

void registerScalarAdjoints(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    using namespace arith;
    attach<AddFOp, SubFOp, MulFOp, DivFOp, NegFOp, MaximumFOp, MinimumFOp, MaxNumFOp, MinNumFOp, SelectOp, ExtFOp,
           TruncFOp>(context);
  });
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    using namespace math;
    attach<ExpOp, LogOp, SqrtOp, RsqrtOp, TanhOp, ErfOp, SinOp, CosOp, AbsFOp, PowFOp>(context);
  });
}

} // namespace hone
