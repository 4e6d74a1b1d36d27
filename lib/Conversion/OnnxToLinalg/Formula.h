// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floating-point scalars with operators, so that the body of an element-wise operator reads as ONNX writes its formula.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_FORMULA_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_FORMULA_H

#include "Lowering.h"

namespace hone::lowering {

/// The type floats are computed in: f32 for everything narrower.
Type getComputeType(Type element);

/// Attributes of Cast: they matter for destinations of 8 bits.
struct CastOptions {
  bool saturate = true;
  StringRef roundMode = "up";
};

/// `scalar`, which holds a value of type `from`, converted to what holds a value of type `to`. Both are types as files
/// say them: with sign, and with narrow types as themselves. Floats out of range of a wide integer type take its nearest
/// value; narrower integers keep the low bits.
Value convertScalar(Builder &b, Value scalar, Type from, Type to, const CastOptions &options = {});

/// f32 from the byte that holds a float of 8 bits or less, and back.
Value decodeNarrowFloat(Builder &b, Value byte, mlir::FloatType type);
Value encodeNarrowFloat(Builder &b, Value scalar, mlir::FloatType type, const CastOptions &options);

/// A float scalar being computed.
struct Number {
  Builder *b;
  Value value;

  Number with(double constant) const {
    return {b, mlir::arith::ConstantOp::create(*b, b->getFloatAttr(value.getType(), constant))};
  }
};

template <typename Op>
Number combine(Number lhs, Number rhs) {
  return {lhs.b, Op::create(*lhs.b, lhs.value, rhs.value)};
}
template <typename Op>
Number apply(Number x) {
  return {x.b, Op::create(*x.b, x.value)};
}

inline Number operator+(Number l, Number r) { return combine<mlir::arith::AddFOp>(l, r); }
inline Number operator-(Number l, Number r) { return combine<mlir::arith::SubFOp>(l, r); }
inline Number operator*(Number l, Number r) { return combine<mlir::arith::MulFOp>(l, r); }
inline Number operator/(Number l, Number r) { return combine<mlir::arith::DivFOp>(l, r); }
inline Number operator+(Number l, double r) { return l + l.with(r); }
inline Number operator-(Number l, double r) { return l - l.with(r); }
inline Number operator*(Number l, double r) { return l * l.with(r); }
inline Number operator/(Number l, double r) { return l / l.with(r); }
inline Number operator+(double l, Number r) { return r.with(l) + r; }
inline Number operator-(double l, Number r) { return r.with(l) - r; }
inline Number operator*(double l, Number r) { return r.with(l) * r; }
inline Number operator/(double l, Number r) { return r.with(l) / r; }
inline Number operator-(Number x) { return apply<mlir::arith::NegFOp>(x); }

/// Comparisons give an i1; they are false for NaN, but != is true.
inline Value compare(mlir::arith::CmpFPredicate predicate, Number l, Number r) {
  return mlir::arith::CmpFOp::create(*l.b, predicate, l.value, r.value);
}
inline Value operator<(Number l, Number r) { return compare(mlir::arith::CmpFPredicate::OLT, l, r); }
inline Value operator>(Number l, Number r) { return compare(mlir::arith::CmpFPredicate::OGT, l, r); }
inline Value operator>=(Number l, Number r) { return compare(mlir::arith::CmpFPredicate::OGE, l, r); }
inline Value operator==(Number l, Number r) { return compare(mlir::arith::CmpFPredicate::OEQ, l, r); }
inline Value operator!=(Number l, Number r) { return compare(mlir::arith::CmpFPredicate::UNE, l, r); }
inline Value operator<(Number l, double r) { return l < l.with(r); }
inline Value operator>(Number l, double r) { return l > l.with(r); }
inline Value operator>=(Number l, double r) { return l >= l.with(r); }
inline Value operator==(Number l, double r) { return l == l.with(r); }
inline Value operator!=(Number l, double r) { return l != l.with(r); }

inline Number select(Value condition, Number ifTrue, Number ifFalse) {
  return {ifTrue.b, mlir::arith::SelectOp::create(*ifTrue.b, condition, ifTrue.value, ifFalse.value)};
}
/// The larger and the smaller; NaN if either is.
inline Number max(Number l, Number r) { return combine<mlir::arith::MaximumFOp>(l, r); }
inline Number min(Number l, Number r) { return combine<mlir::arith::MinimumFOp>(l, r); }
inline Number exp(Number x) { return apply<mlir::math::ExpOp>(x); }
inline Number log(Number x) { return apply<mlir::math::LogOp>(x); }
inline Number sqrt(Number x) { return apply<mlir::math::SqrtOp>(x); }
inline Number tanh(Number x) { return apply<mlir::math::TanhOp>(x); }
inline Number erf(Number x) { return apply<mlir::math::ErfOp>(x); }
inline Number abs(Number x) { return apply<mlir::math::AbsFOp>(x); }
inline Number expm1(Number x) { return apply<mlir::math::ExpM1Op>(x); }
inline Number log1p(Number x) { return apply<mlir::math::Log1pOp>(x); }
inline Number pow(Number x, Number y) { return combine<mlir::math::PowFOp>(x, y); }
inline Number sigmoid(Number x) { return 1.0 / (1.0 + exp(-x)); }
/// log(1 + exp(x)), without overflow.
inline Number softplus(Number x) { return max(x, x.with(0)) + log1p(exp(-abs(x))); }

using Formula = llvm::function_ref<Number(ArrayRef<Number>)>;

/// Element-wise `formula` over inputs `inputs` of the node, computed in the type of the first and stored as `to`, both
/// as files say them.
Value computeElementwise(Node &node, ArrayRef<unsigned> inputs, Type to, Formula formula);

/// Lowers an operator of one float tensor whose result element is `formula(x, node)`.
template <auto formula>
LogicalResult lowerFormula(Node &node) {
  node.set(0, computeElementwise(node, {0}, node.declared(0), [&](ArrayRef<Number> x) { return formula(x[0], node); }));
  return mlir::success();
}

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_FORMULA_H
