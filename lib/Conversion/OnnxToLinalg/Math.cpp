// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic, one element at a time. Integers wrap around, and a division by zero gives zero instead of a trap.

#include "Formula.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace hone::lowering {

//===----------------------------------------------------------------------===//
// Integer pieces
//===----------------------------------------------------------------------===//

static Value integerConstant(Builder &b, Type type, int64_t value) {
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
}

static Value isEqual(Builder &b, Value lhs, int64_t rhs) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, lhs, integerConstant(b, lhs.getType(), rhs));
}

/// A divisor that cannot trap: 1 in place of 0, and of -1, whose quotient of the least integer overflows.
static Value makeSafe(Builder &b, Value divisor, bool isUnsigned) {
  Value one = integerConstant(b, divisor.getType(), 1);
  Value safe = b.createOrFold<arith::SelectOp>(isEqual(b, divisor, 0), one, divisor);
  return isUnsigned ? safe : b.createOrFold<arith::SelectOp>(isEqual(b, divisor, -1), one, safe);
}

/// Quotient rounded towards zero; 0 for a division by zero.
static Value divide(Builder &b, Value x, Value y, bool isUnsigned) {
  Value zero = integerConstant(b, x.getType(), 0), safe = makeSafe(b, y, isUnsigned);
  Value quotient = isUnsigned ? b.createOrFold<arith::DivUIOp>(x, safe) : b.createOrFold<arith::DivSIOp>(x, safe);
  if (!isUnsigned) {
    Value negated = b.createOrFold<arith::SubIOp>(zero, x);
    quotient = b.createOrFold<arith::SelectOp>(isEqual(b, y, -1), negated, quotient);
  }
  return b.createOrFold<arith::SelectOp>(isEqual(b, y, 0), zero, quotient);
}

/// Remainder of that quotient, with the sign of `x`; or with `floored` of the one rounded down, with the sign of `y`.
static Value remainder(Builder &b, Value x, Value y, bool isUnsigned, bool floored) {
  Value safe = makeSafe(b, y, isUnsigned), zero = integerConstant(b, x.getType(), 0);
  if (isUnsigned)
    return b.createOrFold<arith::SelectOp>(isEqual(b, y, 0), zero, b.createOrFold<arith::RemUIOp>(x, safe));
  Value rest = b.createOrFold<arith::RemSIOp>(x, safe);
  if (!floored)
    return rest;
  Value differ =
      b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, b.createOrFold<arith::XOrIOp>(rest, safe), zero);
  Value adjust = b.createOrFold<arith::AndIOp>(
      differ, b.createOrFold<arith::XOrIOp>(isEqual(b, rest, 0), integerConstant(b, b.getI1Type(), 1)));
  return b.createOrFold<arith::SelectOp>(adjust, b.createOrFold<arith::AddIOp>(rest, safe), rest);
}

//===----------------------------------------------------------------------===//
// Binary operators
//===----------------------------------------------------------------------===//

/// One float operation on two elements, in the type that they are computed in.
template <typename Op>
static Value combineFloats(Builder &b, ValueRange x) {
  Type element = x[0].getType(), compute = getComputeType(element);
  Number l{&b, convertScalar(b, x[0], element, compute)}, r{&b, convertScalar(b, x[1], element, compute)};
  return convertScalar(b, combine<Op>(l, r).value, compute, element);
}

/// Result element of a binary arithmetic operator for floats and integers.
template <typename FloatOp, typename IntegerOp>
static Value combineElements(Builder &b, ValueRange x) {
  return isa<FloatType>(x[0].getType()) ? combineFloats<FloatOp>(b, x) : b.createOrFold<IntegerOp>(x[0], x[1]);
}

template <typename FloatOp, typename IntegerOp>
static LogicalResult lowerBinary(Node &node) {
  node.set(0, node.elementwise({node.in(0), node.in(1)}, node.element(0), combineElements<FloatOp, IntegerOp>));
  return success();
}

template <typename Op>
static LogicalResult lowerBitwise(Node &node) {
  node.set(0, node.elementwise({node.in(0), node.in(1)}, node.element(0),
                               [](Builder &b, ValueRange x) { return b.createOrFold<Op>(x[0], x[1]); }));
  return success();
}

static LogicalResult lowerDiv(Node &node) {
  bool isFloat = isa<FloatType>(node.element(0)), isUnsigned = node.isUnsigned(0);
  node.set(0, node.elementwise({node.in(0), node.in(1)}, node.element(0), [&](Builder &b, ValueRange x) -> Value {
    if (isFloat)
      return combineFloats<arith::DivFOp>(b, x);
    return divide(b, x[0], x[1], isUnsigned);
  }));
  return success();
}

/// Float remainder with the sign of `y`, and y's zero where there is no rest.
static Number floorRemainder(Number x, Number y) {
  Number rest = combine<arith::RemFOp>(x, y);
  Value differ = rest < 0.0, negative = y < 0.0;
  Value opposite = arith::XOrIOp::create(*x.b, differ, negative);
  Number zero = combine<math::CopySignOp>(rest.with(0), y);
  return select(rest == 0.0, zero, select(opposite, rest + y, rest));
}

/// On the scalars of shape arithmetic: the rest of a size as the size that it is.
static std::optional<Value> getRestOfSizes(Node &node, Builder &b, ValueRange x) {
  if (&b != &node.b)
    return std::nullopt;
  IndexMath &math = node.math;
  Size size = math.fromScalar(x[0]), by = math.fromScalar(x[1]);
  if (!math.isAtLeast(size, 0) || !math.isAtLeast(by, 1))
    return std::nullopt;
  return math.scalar(math.sub(size, math.mul(math.floorDiv(size, by), by)), x[0].getType());
}

static LogicalResult lowerMod(Node &node) {
  bool truncates = node.integer("fmod", 0) != 0, isUnsigned = node.isUnsigned(0);
  if (isa<FloatType>(node.element(0))) {
    node.set(0, computeElementwise(node, {0, 1}, node.declared(0), [&](ArrayRef<Number> x) {
               return truncates ? combine<arith::RemFOp>(x[0], x[1]) : floorRemainder(x[0], x[1]);
             }));
    return success();
  }
  node.set(0, node.elementwise({node.in(0), node.in(1)}, node.element(0), [&](Builder &b, ValueRange x) -> Value {
    if (auto rest = getRestOfSizes(node, b, x))
      return *rest;
    return remainder(b, x[0], x[1], isUnsigned, !truncates);
  }));
  return success();
}

/// Integer power by repeated squaring; wraps around. Negative exponents give 0, but for the base 1.
static Value power(Builder &b, Value base, Value exponent, bool isUnsigned) {
  Type type = base.getType(), exponentType = exponent.getType();
  Value one = integerConstant(b, type, 1), zero = integerConstant(b, type, 0);
  Value none = integerConstant(b, exponentType, 0), single = integerConstant(b, exponentType, 1);
  auto positive = isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
  auto loop = scf::WhileOp::create(
      b, TypeRange{type, type, exponentType}, ValueRange{one, base, exponent},
      [&](OpBuilder &nested, Location loc, ValueRange state) {
        Value more = arith::CmpIOp::create(nested, loc, positive, state[2], none);
        scf::ConditionOp::create(nested, loc, more, state);
      },
      [&](OpBuilder &nested, Location loc, ValueRange state) {
        Builder inner(loc, nested);
        Value isEven = isEqual(inner, arith::AndIOp::create(inner, state[2], single), 0);
        Value product = arith::MulIOp::create(inner, state[0], state[1]);
        Value result = arith::SelectOp::create(inner, isEven, state[0], product);
        Value square = arith::MulIOp::create(inner, state[1], state[1]);
        Value half = arith::ShRUIOp::create(inner, state[2], single);
        scf::YieldOp::create(inner, ValueRange{result, square, half});
      });
  if (isUnsigned)
    return loop.getResult(0);
  Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, exponent, none);
  Value unit = arith::SelectOp::create(b, isEqual(b, base, 1), one, zero);
  return arith::SelectOp::create(b, negative, unit, loop.getResult(0));
}

/// The exponent if every element of the tensor is the same constant.
static std::optional<double> getConstantExponent(Value tensor) {
  DenseElementsAttr dense;
  if (!matchPattern(tensor, m_Constant(&dense)) || dense.empty() || !dense.isSplat() ||
      !dense.getElementType().isIntOrFloat())
    return std::nullopt;
  if (isa<FloatType>(dense.getElementType()))
    return dense.getSplatValue<APFloat>().convertToDouble();
  return static_cast<double>(dense.getSplatValue<APInt>().getSExtValue());
}

static Number raise(Number x, Number y, std::optional<double> exponent) {
  if (exponent == 2.0)
    return x * x;
  if (exponent == 3.0)
    return x * x * x;
  if (exponent == 1.0)
    return x;
  if (exponent == -1.0)
    return 1.0 / x;
  if (exponent == 0.5)
    return sqrt(x);
  return pow(x, y);
}

/// The result has the type of the base; an integer base with a float exponent is computed in f64.
static LogicalResult lowerPow(Node &node) {
  Type base = node.declared(0), exponent = node.declared(1);
  std::optional<double> constant = getConstantExponent(node.in(1));
  bool integers = !isa<FloatType>(base) && !isa<FloatType>(exponent);
  Type compute = isa<FloatType>(base) ? getComputeType(base) : Type(node.b.getF64Type());
  node.set(0, node.elementwise({node.in(0), node.in(1)}, node.element(0), [&](Builder &b, ValueRange x) -> Value {
    if (integers)
      return power(b, x[0], x[1], exponent.isUnsignedInteger());
    Number l{&b, convertScalar(b, x[0], base, compute)}, r{&b, convertScalar(b, x[1], exponent, compute)};
    return convertScalar(b, raise(l, r, constant).value, compute, base);
  }));
  return success();
}

/// Shifts by less than 0 or by the width and more leave what the sign fills in.
template <bool left>
static Value shift(Builder &b, Value x, Value by, bool isUnsigned) {
  unsigned width = x.getType().getIntOrFloatBitWidth();
  Value last = integerConstant(b, x.getType(), width - 1), zero = integerConstant(b, x.getType(), 0);
  Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, by, last);
  Value amount = arith::SelectOp::create(b, inside, by, last);
  if (left)
    return arith::SelectOp::create(b, inside, arith::ShLIOp::create(b, x, amount), zero);
  if (isUnsigned)
    return arith::SelectOp::create(b, inside, arith::ShRUIOp::create(b, x, amount), zero);
  return arith::ShRSIOp::create(b, x, amount);
}

static LogicalResult lowerBitShift(Node &node) {
  StringRef direction = node.string("direction");
  bool isUnsigned = node.isUnsigned(0), left = direction == "LEFT";
  if (!left && direction != "RIGHT")
    return node.fail() << "expected 'direction' to be LEFT or RIGHT, but got '" << direction << "'";
  node.set(0, node.elementwise({node.in(0), node.in(1)}, node.element(0), [&](Builder &b, ValueRange x) {
    return left ? shift<true>(b, x[0], x[1], isUnsigned) : shift<false>(b, x[0], x[1], isUnsigned);
  }));
  return success();
}

static LogicalResult lowerPRelu(Node &node) {
  if (!isa<FloatType>(node.element(0))) {
    bool isUnsigned = node.isUnsigned(0);
    node.set(0, node.elementwise({node.in(0), node.in(1)}, node.element(0), [&](Builder &b, ValueRange x) -> Value {
      Value zero = integerConstant(b, x[0].getType(), 0);
      auto less = isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
      Value negative = arith::CmpIOp::create(b, less, x[0], zero);
      return arith::SelectOp::create(b, negative, arith::MulIOp::create(b, x[0], x[1]), x[0]);
    }));
    return success();
  }
  node.set(0, computeElementwise(node, {0, 1}, node.declared(0),
                                 [&](ArrayRef<Number> x) { return select(x[0] < 0.0, x[0] * x[1], x[0]); }));
  return success();
}

//===----------------------------------------------------------------------===//
// Any number of operands
//===----------------------------------------------------------------------===//

/// The larger or smaller of two elements; NaN if either is.
template <bool larger>
static Value pick(Builder &b, ValueRange x, bool isUnsigned) {
  if (isa<FloatType>(x[0].getType()))
    return larger ? combineFloats<arith::MaximumFOp>(b, x) : combineFloats<arith::MinimumFOp>(b, x);
  if constexpr (larger)
    return isUnsigned ? arith::MaxUIOp::create(b, x[0], x[1]).getResult()
                      : arith::MaxSIOp::create(b, x[0], x[1]).getResult();
  return isUnsigned ? arith::MinUIOp::create(b, x[0], x[1]).getResult()
                    : arith::MinSIOp::create(b, x[0], x[1]).getResult();
}

/// All inputs combined from the left, two at a time.
static Value fold(Node &node, Node::Body body) {
  Value result = node.in(0);
  for (unsigned i = 1; i < node.inputs(); ++i)
    result = node.elementwise({result, node.in(i)}, node.element(0), body);
  return result;
}

template <bool larger>
static LogicalResult lowerExtreme(Node &node) {
  bool isUnsigned = node.isUnsigned(0);
  node.set(0, fold(node, [&](Builder &b, ValueRange x) { return pick<larger>(b, x, isUnsigned); }));
  return success();
}

static LogicalResult lowerSum(Node &node) {
  node.set(0, fold(node, combineElements<arith::AddFOp, arith::AddIOp>));
  return success();
}

static LogicalResult lowerMean(Node &node) {
  Value sum = fold(node, combineElements<arith::AddFOp, arith::AddIOp>);
  Type element = node.element(0), compute = getComputeType(element);
  double count = node.inputs();
  node.set(0, node.elementwise({sum}, element, [&](Builder &b, ValueRange x) {
    Number total{&b, convertScalar(b, x[0], element, compute)};
    return convertScalar(b, (total / count).value, compute, element);
  }));
  return success();
}

/// Bounds are inputs since opset 11 and attributes before.
static LogicalResult lowerClip(Node &node) {
  bool isUnsigned = node.isUnsigned(0);
  Type element = node.element(0);
  auto bound = [&](StringRef name, unsigned input) -> Value {
    if (node.has(input) || !node.hasAttribute(name))
      return node.in(input);
    Value scalar = node.constant(node.real(name), element);
    return node.fromScalars(RankedTensorType::get({}, element), scalar);
  };
  Value result = node.in(0);
  if (Value least = bound("min", 1))
    result = node.elementwise({result, least}, element,
                              [&](Builder &b, ValueRange x) { return pick<true>(b, x, isUnsigned); });
  if (Value most = bound("max", 2))
    result = node.elementwise({result, most}, element,
                              [&](Builder &b, ValueRange x) { return pick<false>(b, x, isUnsigned); });
  node.set(0, result);
  return success();
}

//===----------------------------------------------------------------------===//
// Unary operators
//===----------------------------------------------------------------------===//

/// An operator of math or arith on floats.
template <typename Op>
static LogicalResult lowerUnary(Node &node) {
  return lowerFormula<[](Number x, Node &) { return apply<Op>(x); }>(node);
}

using IntegerBody = Value (*)(Builder &, Value, bool isUnsigned);
using FloatBody = Number (*)(Number);

/// An operator that has a meaning for floats and one for integers.
static LogicalResult lowerEither(Node &node, FloatBody floats, IntegerBody integers) {
  if (isa<FloatType>(node.element(0))) {
    node.set(0, computeElementwise(node, {0}, node.declared(0), [&](ArrayRef<Number> x) { return floats(x[0]); }));
    return success();
  }
  bool isUnsigned = node.isUnsigned(0);
  node.set(0, node.elementwise({node.in(0)}, node.element(0),
                               [&](Builder &b, ValueRange x) { return integers(b, x[0], isUnsigned); }));
  return success();
}

static Value negate(Builder &b, Value x, bool) {
  return b.createOrFold<arith::SubIOp>(integerConstant(b, x.getType(), 0), x);
}

static LogicalResult lowerNeg(Node &node) {
  return lowerEither(node, [](Number x) { return -x; }, negate);
}

static LogicalResult lowerAbs(Node &node) {
  return lowerEither(
      node, [](Number x) { return abs(x); },
      [](Builder &b, Value x, bool isUnsigned) {
        return isUnsigned ? x : arith::MaxSIOp::create(b, x, negate(b, x, false)).getResult();
      });
}

static Value signOf(Builder &b, Value x, bool isUnsigned) {
  Value one = integerConstant(b, x.getType(), 1), minusOne = integerConstant(b, x.getType(), -1);
  if (isUnsigned)
    return arith::MinUIOp::create(b, x, one);
  return arith::MaxSIOp::create(b, arith::MinSIOp::create(b, x, one), minusOne);
}

static LogicalResult lowerSign(Node &node) {
  return lowerEither(node, [](Number x) { return select(x > 0.0, x.with(1), select(x < 0.0, x.with(-1), x)); }, signOf);
}

/// Tests of one float; the others, among them 8-bit floats, are decoded first.
template <auto predicate>
static LogicalResult lowerTest(Node &node) {
  Type from = node.declared(0), compute = getComputeType(from);
  node.set(0, node.elementwise({node.in(0)}, node.b.getI1Type(), [&](Builder &b, ValueRange x) -> Value {
    return predicate(Number{&b, convertScalar(b, x[0], from, compute)}, node);
  }));
  return success();
}

static Value isInfinite(Number x, Node &node) {
  double infinity = std::numeric_limits<double>::infinity();
  bool negative = node.integer("detect_negative", 1), positive = node.integer("detect_positive", 1);
  if (negative && positive)
    return abs(x) == infinity;
  if (negative || positive)
    return x == (negative ? -infinity : infinity);
  return integerConstant(*x.b, x.b->getI1Type(), 0);
}

static LogicalResult lowerBitwiseNot(Node &node) {
  node.set(0, node.elementwise({node.in(0)}, node.element(0), [&](Builder &b, ValueRange x) {
    return b.createOrFold<arith::XOrIOp>(x[0], integerConstant(b, x[0].getType(), -1));
  }));
  return success();
}

static void addUnaryLowerings(LoweringTable &table) {
  table["onnx.Abs"] = lowerAbs;
  table["onnx.Acos"] = lowerUnary<math::AcosOp>;
  table["onnx.Acosh"] = lowerUnary<math::AcoshOp>;
  table["onnx.Asin"] = lowerUnary<math::AsinOp>;
  table["onnx.Asinh"] = lowerUnary<math::AsinhOp>;
  table["onnx.Atan"] = lowerUnary<math::AtanOp>;
  table["onnx.Atanh"] = lowerUnary<math::AtanhOp>;
  table["onnx.BitwiseNot"] = lowerBitwiseNot;
  table["onnx.Ceil"] = lowerUnary<math::CeilOp>;
  table["onnx.Cos"] = lowerUnary<math::CosOp>;
  table["onnx.Cosh"] = lowerUnary<math::CoshOp>;
  table["onnx.Erf"] = lowerUnary<math::ErfOp>;
  table["onnx.Exp"] = lowerUnary<math::ExpOp>;
  table["onnx.Floor"] = lowerUnary<math::FloorOp>;
  table["onnx.IsInf"] = lowerTest<isInfinite>;
  table["onnx.IsNaN"] = lowerTest<[](Number x, Node &) { return x != x; }>;
  table["onnx.Log"] = lowerUnary<math::LogOp>;
  table["onnx.Neg"] = lowerNeg;
  table["onnx.Reciprocal"] = lowerFormula<[](Number x, Node &) { return 1.0 / x; }>;
  table["onnx.Round"] = lowerUnary<math::RoundEvenOp>;
  table["onnx.Sign"] = lowerSign;
  table["onnx.Sin"] = lowerUnary<math::SinOp>;
  table["onnx.Sinh"] = lowerUnary<math::SinhOp>;
  table["onnx.Sqrt"] = lowerUnary<math::SqrtOp>;
  table["onnx.Tan"] = lowerUnary<math::TanOp>;
  table["onnx.Tanh"] = lowerUnary<math::TanhOp>;
}

void addMathLowerings(LoweringTable &table) {
  addUnaryLowerings(table);
  table["onnx.Add"] = lowerBinary<arith::AddFOp, arith::AddIOp>;
  table["onnx.BitShift"] = lowerBitShift;
  table["onnx.BitwiseAnd"] = lowerBitwise<arith::AndIOp>;
  table["onnx.BitwiseOr"] = lowerBitwise<arith::OrIOp>;
  table["onnx.BitwiseXor"] = lowerBitwise<arith::XOrIOp>;
  table["onnx.Clip"] = lowerClip;
  table["onnx.Div"] = lowerDiv;
  table["onnx.Max"] = lowerExtreme<true>;
  table["onnx.Mean"] = lowerMean;
  table["onnx.Min"] = lowerExtreme<false>;
  table["onnx.Mod"] = lowerMod;
  table["onnx.Mul"] = lowerBinary<arith::MulFOp, arith::MulIOp>;
  table["onnx.PRelu"] = lowerPRelu;
  table["onnx.Pow"] = lowerPow;
  table["onnx.Sub"] = lowerBinary<arith::SubFOp, arith::SubIOp>;
  table["onnx.Sum"] = lowerSum;
}

} // namespace hone::lowering
