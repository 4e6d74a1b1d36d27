// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Polynomials over run-time sizes.

#include "IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace hone::lowering {

/// Scalars of shape arithmetic are short chains; deeper ones are taken as they are.
static constexpr unsigned kMaxScalarDepth = 16;

std::optional<int64_t> IndexMath::getConstant(Size size) { return getConstantIntValue(size); }

IndexMath::Monomial IndexMath::getAtom(Value value) {
  auto [it, isNew] = atomNumbers.try_emplace(value, atoms.size());
  if (isNew)
    atoms.push_back(value);
  return {it->second};
}

IndexMath::Polynomial IndexMath::getScalar(Value value, unsigned depth) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  IntegerAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return constant.getInt() == 0 ? Polynomial() : Polynomial{{{}, constant.getInt()}};
  if (depth < kMaxScalarDepth) {
    if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
      return getScalar(cast.getIn(), depth + 1);
    if (auto cast = value.getDefiningOp<arith::ExtSIOp>(); cast && !cast.getIn().getType().isInteger(1))
      return getScalar(cast.getIn(), depth + 1);
    auto fold = [&](auto op, auto combine) {
      return get(combine(build(getScalar(op.getLhs(), depth + 1)), build(getScalar(op.getRhs(), depth + 1))));
    };
    if (auto op = value.getDefiningOp<arith::AddIOp>())
      return fold(op, [&](Size l, Size r) { return add(l, r); });
    if (auto op = value.getDefiningOp<arith::SubIOp>())
      return fold(op, [&](Size l, Size r) { return sub(l, r); });
    if (auto op = value.getDefiningOp<arith::MulIOp>())
      return fold(op, [&](Size l, Size r) { return mul(l, r); });
  }
  if (!value.getType().isIndex())
    value = b.createOrFold<arith::IndexCastOp>(b.getIndexType(), value);
  return {{getAtom(value), 1}};
}

IndexMath::Polynomial IndexMath::get(Size size) {
  if (auto constant = getConstant(size))
    return *constant == 0 ? Polynomial() : Polynomial{{{}, *constant}};
  return getScalar(cast<Value>(size), 0);
}

std::string IndexMath::getKey(const Polynomial &polynomial) {
  std::string key;
  for (const auto &[monomial, coefficient] : polynomial) {
    key += "+" + std::to_string(coefficient);
    for (unsigned atom : monomial)
      key += "*" + std::to_string(atom);
  }
  return key;
}

Value IndexMath::buildMonomial(const Monomial &monomial, int64_t coefficient) {
  Value product;
  for (unsigned atom : monomial)
    product = product ? arith::MulIOp::create(b, product, atoms[atom]) : atoms[atom];
  if (!product)
    return arith::ConstantIndexOp::create(b, coefficient);
  if (coefficient == 1)
    return product;
  return arith::MulIOp::create(b, product, arith::ConstantIndexOp::create(b, coefficient));
}

Size IndexMath::build(const Polynomial &polynomial) {
  if (polynomial.empty())
    return constant(0);
  const auto &[first, coefficient] = *polynomial.begin();
  if (polynomial.size() == 1 && first.empty())
    return constant(coefficient);
  if (polynomial.size() == 1 && first.size() == 1 && coefficient == 1)
    return atoms[first.front()];
  std::string key = getKey(polynomial);
  if (auto it = values.find(key); it != values.end())
    return it->second;
  Value sum;
  for (const auto &[monomial, factor] : polynomial) {
    Value term = buildMonomial(monomial, factor);
    sum = sum ? arith::AddIOp::create(b, sum, term) : term;
  }
  known[sum] = polynomial;
  return values[key] = sum;
}

static void addScaled(std::map<std::vector<unsigned>, int64_t> &into, const std::vector<unsigned> &monomial, int64_t by) {
  int64_t &coefficient = into[monomial];
  coefficient += by;
  if (coefficient == 0)
    into.erase(monomial);
}

Size IndexMath::add(Size lhs, Size rhs) {
  Polynomial sum = get(lhs);
  for (const auto &[monomial, coefficient] : get(rhs))
    addScaled(sum, monomial, coefficient);
  return build(sum);
}

Size IndexMath::sub(Size lhs, Size rhs) {
  Polynomial difference = get(lhs);
  for (const auto &[monomial, coefficient] : get(rhs))
    addScaled(difference, monomial, -coefficient);
  return build(difference);
}

Size IndexMath::mul(Size lhs, Size rhs) {
  Polynomial product, right = get(rhs);
  for (const auto &[a, ca] : get(lhs))
    for (const auto &[c, cc] : right) {
      Monomial both(a);
      both.insert(both.end(), c.begin(), c.end());
      llvm::sort(both);
      addScaled(product, both, ca * cc);
    }
  return build(product);
}

std::optional<IndexMath::Polynomial> IndexMath::divideExactly(const Polynomial &lhs, const Polynomial &rhs) {
  if (rhs.size() != 1)
    return lhs == rhs ? std::optional(Polynomial{{Monomial(), 1}}) : std::nullopt;
  const auto &[divisor, factor] = *rhs.begin();
  Polynomial quotient;
  for (const auto &[monomial, coefficient] : lhs) {
    if (coefficient % factor != 0 || !std::includes(monomial.begin(), monomial.end(), divisor.begin(), divisor.end()))
      return std::nullopt;
    Monomial rest;
    std::set_difference(monomial.begin(), monomial.end(), divisor.begin(), divisor.end(), std::back_inserter(rest));
    quotient[rest] = coefficient / factor;
  }
  return quotient;
}

template <typename Op>
Size IndexMath::buildBinary(const char *name, Size lhs, Size rhs) {
  std::string key = name + getKey(get(lhs)) + "," + getKey(get(rhs));
  Value &result = values[key];
  if (!result)
    result = b.createOrFold<Op>(value(lhs), value(rhs));
  if (auto constant = getConstantIntValue(result))
    return this->constant(*constant);
  if (isAtLeast(lhs, 0) && isAtLeast(rhs, 0))
    markNonNegative(result);
  return result;
}

Size IndexMath::floorDiv(Size lhs, Size rhs) {
  Polynomial left = get(lhs), right = get(rhs);
  if (right.empty())
    return constant(0);
  if (auto quotient = divideExactly(left, right))
    return build(*quotient);
  return buildBinary<arith::FloorDivSIOp>("floordiv", lhs, rhs);
}

Size IndexMath::ceilDiv(Size lhs, Size rhs) {
  Polynomial right = get(rhs);
  if (auto quotient = right.empty() ? std::nullopt : divideExactly(get(lhs), right))
    return build(*quotient);
  return buildBinary<arith::CeilDivSIOp>("ceildiv", lhs, rhs);
}

Size IndexMath::min(Size lhs, Size rhs) {
  if (auto gap = difference(lhs, rhs))
    return *gap <= 0 ? lhs : rhs;
  if (getConstant(lhs) && isAtLeast(rhs, *getConstant(lhs)))
    return lhs;
  if (getConstant(rhs) && isAtLeast(lhs, *getConstant(rhs)))
    return rhs;
  return buildBinary<arith::MinSIOp>("min", lhs, rhs);
}

Size IndexMath::max(Size lhs, Size rhs) {
  if (auto gap = difference(lhs, rhs))
    return *gap >= 0 ? lhs : rhs;
  if (getConstant(lhs) && isAtLeast(rhs, *getConstant(lhs)))
    return rhs;
  if (getConstant(rhs) && isAtLeast(lhs, *getConstant(rhs)))
    return lhs;
  return buildBinary<arith::MaxSIOp>("max", lhs, rhs);
}

Size IndexMath::select(Value condition, Size ifTrue, Size ifFalse) {
  APInt constant;
  if (matchPattern(condition, m_ConstantInt(&constant)))
    return constant.isZero() ? ifFalse : ifTrue;
  if (equal(ifTrue, ifFalse))
    return ifTrue;
  Value result = arith::SelectOp::create(b, condition, value(ifTrue), value(ifFalse));
  if (isAtLeast(ifTrue, 0) && isAtLeast(ifFalse, 0))
    markNonNegative(result);
  return result;
}

bool IndexMath::equal(Size lhs, Size rhs) { return get(lhs) == get(rhs); }

std::optional<int64_t> IndexMath::difference(Size lhs, Size rhs) {
  Polynomial difference = get(lhs);
  for (const auto &[monomial, coefficient] : get(rhs))
    addScaled(difference, monomial, -coefficient);
  if (difference.empty())
    return 0;
  if (difference.size() == 1 && difference.begin()->first.empty())
    return difference.begin()->second;
  return std::nullopt;
}

bool IndexMath::isAtLeast(Size size, int64_t least) {
  int64_t known = 0;
  for (const auto &[monomial, coefficient] : get(size)) {
    if (monomial.empty())
      known = coefficient;
    else if (coefficient < 0 || llvm::any_of(monomial, [&](unsigned atom) { return !nonNegative.contains(atoms[atom]); }))
      return false;
  }
  return known >= least;
}

Value IndexMath::value(Size size) {
  if (auto constant = getConstant(size))
    return arith::ConstantIndexOp::create(b, *constant);
  return cast<Value>(size);
}

Value IndexMath::scalar(Size size, Type type) {
  if (type.isIndex())
    return value(size);
  if (auto constant = getConstant(size))
    return arith::ConstantOp::create(b, IntegerAttr::get(type, *constant));
  return b.createOrFold<arith::IndexCastOp>(type, cast<Value>(size));
}

Size IndexMath::fromScalar(Value value) { return build(getScalar(value, 0)); }

} // namespace hone::lowering
