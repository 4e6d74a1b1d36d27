// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Polynomials over run-time sizes.

#include "IndexMath.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace hone::lowering {

/// Scalars of shape arithmetic are short chains; deeper ones are taken as they are.
static constexpr unsigned kMaxScalarDepth = 32;

std::optional<int64_t> IndexMath::getConstant(Size size) { return getConstantIntValue(size); }

//===----------------------------------------------------------------------===//
// Polynomials
//===----------------------------------------------------------------------===//

/// Sums and products wrap: a file may say sizes that no tensor has, and they must not be undefined behaviour here.
static int64_t wrapAdd(int64_t lhs, int64_t rhs) {
  return static_cast<int64_t>(static_cast<uint64_t>(lhs) + static_cast<uint64_t>(rhs));
}
static int64_t wrapMul(int64_t lhs, int64_t rhs) {
  return static_cast<int64_t>(static_cast<uint64_t>(lhs) * static_cast<uint64_t>(rhs));
}

static void addScaled(std::map<std::vector<unsigned>, int64_t> &into, const std::vector<unsigned> &monomial,
                      int64_t by) {
  int64_t &coefficient = into[monomial];
  coefficient = wrapAdd(coefficient, by);
  if (coefficient == 0)
    into.erase(monomial);
}

IndexMath::Polynomial IndexMath::getConstantPolynomial(int64_t value) {
  return value == 0 ? Polynomial() : Polynomial{{{}, value}};
}

std::optional<int64_t> IndexMath::getConstant(const Polynomial &polynomial) {
  if (polynomial.empty())
    return 0;
  if (polynomial.size() == 1 && polynomial.begin()->first.empty())
    return polynomial.begin()->second;
  return std::nullopt;
}

IndexMath::Polynomial IndexMath::plus(Polynomial lhs, const Polynomial &rhs, int64_t factor) {
  for (const auto &[monomial, coefficient] : rhs)
    addScaled(lhs, monomial, wrapMul(coefficient, factor));
  return lhs;
}

static std::vector<unsigned> multiply(const std::vector<unsigned> &lhs, const std::vector<unsigned> &rhs) {
  std::vector<unsigned> product(lhs);
  product.insert(product.end(), rhs.begin(), rhs.end());
  llvm::sort(product);
  return product;
}

IndexMath::Polynomial IndexMath::times(const Polynomial &lhs, const Polynomial &rhs) {
  Polynomial product;
  for (const auto &[left, a] : lhs)
    for (const auto &[right, c] : rhs)
      addScaled(product, multiply(left, right), wrapMul(a, c));
  return product;
}

std::optional<IndexMath::Polynomial> IndexMath::divideExactly(Polynomial lhs, const Polynomial &rhs) {
  if (rhs.empty())
    return std::nullopt;
  // By degree first: an order that products keep, so that every step removes the leading term for good.
  auto less = [](const auto &x, const auto &y) {
    return std::pair(x.first.size(), x.first) < std::pair(y.first.size(), y.first);
  };
  auto [divisor, factor] = *std::max_element(rhs.begin(), rhs.end(), less);
  Polynomial quotient;
  while (!lhs.empty()) {
    auto [lead, coefficient] = *std::max_element(lhs.begin(), lhs.end(), less);
    bool divides = factor != -1 ? coefficient % factor == 0 : coefficient != std::numeric_limits<int64_t>::min();
    if (!divides || !std::includes(lead.begin(), lead.end(), divisor.begin(), divisor.end()))
      return std::nullopt;
    Monomial rest;
    std::set_difference(lead.begin(), lead.end(), divisor.begin(), divisor.end(), std::back_inserter(rest));
    Polynomial term{{rest, coefficient / factor}};
    quotient = plus(std::move(quotient), term, 1);
    lhs = plus(std::move(lhs), times(term, rhs), -1);
  }
  return quotient;
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

/// The constant term, which is taken out of the polynomial.
static int64_t takeConstant(std::map<std::vector<unsigned>, int64_t> &polynomial) {
  auto node = polynomial.extract(std::vector<unsigned>());
  return node ? node.mapped() : 0;
}

bool IndexMath::isBounded(Polynomial polynomial, int64_t least) const {
  int64_t constant = takeConstant(polynomial), sum = 0;
  auto known = bounds.find(polynomial);
  return known != bounds.end() && !llvm::AddOverflow(known->second, constant, sum) && sum >= least;
}

bool IndexMath::isAtLeast(const Polynomial &polynomial, int64_t least) const {
  if (!bounds.empty() && isBounded(polynomial, least))
    return true;
  int64_t constant = 0;
  for (const auto &[monomial, coefficient] : polynomial) {
    if (monomial.empty())
      constant = coefficient;
    else if (coefficient < 0 ||
             llvm::any_of(monomial, [&](unsigned atom) { return !nonNegative.contains(atoms[atom]); }))
      return false;
  }
  return constant >= least;
}

void IndexMath::assume(Size size, int64_t least) {
  Polynomial rest = get(size);
  int64_t constant = takeConstant(rest), bound = 0;
  bool isLasting = isa_and_nonnull<FunctionOpInterface>(b.getInsertionBlock()->getParentOp());
  if (!isLasting || rest.empty() || llvm::SubOverflow(least, constant, bound))
    return;
  auto [it, isNew] = bounds.try_emplace(std::move(rest), bound);
  it->second = std::max(it->second, bound);
}

void IndexMath::factor(Size size, int64_t &constant, SmallVectorImpl<Value> &factors) {
  Polynomial polynomial = get(size);
  if (polynomial.size() != 1 || polynomial.begin()->second < 0) {
    if (!polynomial.empty())
      factors.push_back(value(size));
    return;
  }
  const auto &[monomial, coefficient] = *polynomial.begin();
  if (llvm::MulOverflow(constant, coefficient, constant))
    constant = std::numeric_limits<int64_t>::max();
  for (unsigned atom : monomial)
    factors.push_back(atoms[atom]);
}

//===----------------------------------------------------------------------===//
// From values to polynomials. Nothing is built here: a value may be seen from inside a region first, and again outside.
//===----------------------------------------------------------------------===//

unsigned IndexMath::getAtom(Value value) {
  auto [it, isNew] = atomNumbers.try_emplace(value, atoms.size());
  if (isNew)
    atoms.push_back(value);
  return it->second;
}

void IndexMath::markNonNegative(Value value) {
  Polynomial polynomial = getScalar(value, 0);
  if (polynomial.size() == 1 && polynomial.begin()->first.size() == 1 && polynomial.begin()->second == 1)
    nonNegative.insert(atoms[polynomial.begin()->first.front()]);
}

/// Types in which shape arithmetic is done.
static bool isSizeType(Type type) { return type.isIndex() || type.isInteger(64) || type.isInteger(32); }

/// The quotient of two constants as `op` rounds it.
static std::optional<int64_t> divideConstants(Operation *op, int64_t lhs, int64_t rhs) {
  if (rhs == 0 || (lhs == std::numeric_limits<int64_t>::min() && rhs == -1))
    return std::nullopt;
  if (isa<arith::FloorDivSIOp>(op))
    return llvm::divideFloorSigned(lhs, rhs);
  return isa<arith::CeilDivSIOp>(op) ? llvm::divideCeilSigned(lhs, rhs) : lhs / rhs;
}

/// Minima, maxima, quotients and selections: what they come to if it can be known, else one atom for equal ones.
std::optional<IndexMath::Polynomial> IndexMath::seeThroughChoice(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!isa<arith::MaxSIOp, arith::MinSIOp, arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp, arith::SelectOp>(
          op))
    return std::nullopt;
  bool isSelect = isa<arith::SelectOp>(op);
  if (auto taken = isSelect ? decide(op->getOperand(0)) : std::nullopt)
    return getScalar(op->getOperand(*taken ? 1 : 2), depth + 1);
  Polynomial lhs = getScalar(op->getOperand(isSelect), depth + 1),
             rhs = getScalar(op->getOperand(isSelect + 1), depth + 1);
  if (isSelect && lhs == rhs)
    return lhs;
  if (isa<arith::MaxSIOp, arith::MinSIOp>(op)) {
    if (isAtLeast(plus(rhs, lhs, -1), 0))
      return isa<arith::MaxSIOp>(op) ? rhs : lhs;
    if (isAtLeast(plus(lhs, rhs, -1), 0))
      return isa<arith::MaxSIOp>(op) ? lhs : rhs;
  } else if (!isSelect) {
    if (auto quotient = divideExactly(lhs, rhs))
      return quotient;
    if (getConstant(lhs) && getConstant(rhs))
      if (auto quotient = divideConstants(op, *getConstant(lhs), *getConstant(rhs)))
        return getConstantPolynomial(*quotient);
  }
  bool bothPositive = isAtLeast(lhs, 0) && isAtLeast(rhs, 0);
  if (bothPositive || (isa<arith::MaxSIOp>(op) && (isAtLeast(lhs, 0) || isAtLeast(rhs, 0))))
    nonNegative.insert(value);
  std::string key = op->getName().getStringRef().str() + getKey(lhs) + "," + getKey(rhs);
  if (isSelect)
    key += "?" + std::to_string(getAtom(op->getOperand(0)));
  Value same = values.try_emplace(key, value).first->second;
  bool visible = same.getParentRegion()->isAncestor(value.getParentRegion());
  return Polynomial{{{getAtom(visible ? same : value)}, 1}};
}

std::optional<IndexMath::Polynomial> IndexMath::seeThrough(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op || depth >= kMaxScalarDepth || !isSizeType(value.getType()))
    return std::nullopt;
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op) && !op->getOperand(0).getType().isInteger(1))
    return getScalar(op->getOperand(0), depth + 1);
  if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) {
    Polynomial lhs = getScalar(op->getOperand(0), depth + 1), rhs = getScalar(op->getOperand(1), depth + 1);
    return isa<arith::MulIOp>(op) ? times(lhs, rhs) : plus(std::move(lhs), rhs, isa<arith::AddIOp>(op) ? 1 : -1);
  }
  return seeThroughChoice(value, depth);
}

IndexMath::Polynomial IndexMath::getScalar(Value value, unsigned depth) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return getConstantPolynomial(constant.getSExtValue());
  std::optional<Polynomial> seen = seeThrough(value, depth);
  Polynomial polynomial = seen ? std::move(*seen) : Polynomial{{{getAtom(value)}, 1}};
  return known[value] = polynomial;
}

IndexMath::Polynomial IndexMath::get(Size size) {
  if (auto constant = getConstant(size))
    return getConstantPolynomial(*constant);
  return getScalar(cast<Value>(size), 0);
}

//===----------------------------------------------------------------------===//
// From polynomials to values
//===----------------------------------------------------------------------===//

Value IndexMath::getIndex(unsigned atom) {
  if (atoms[atom].getType().isIndex())
    return atoms[atom];
  std::string key = "index" + std::to_string(atom);
  if (auto it = values.find(key); it != values.end())
    return it->second;
  return values[key] = b.createOrFold<arith::IndexCastOp>(b.getIndexType(), atoms[atom]);
}

Value IndexMath::buildMonomial(const Monomial &monomial, int64_t coefficient) {
  Value product;
  for (unsigned atom : monomial)
    product = product ? arith::MulIOp::create(b, product, getIndex(atom)) : getIndex(atom);
  if (!product)
    return arith::ConstantIndexOp::create(b, coefficient);
  if (coefficient == 1)
    return product;
  return arith::MulIOp::create(b, product, arith::ConstantIndexOp::create(b, coefficient));
}

Size IndexMath::build(const Polynomial &polynomial) {
  if (auto constant = getConstant(polynomial))
    return this->constant(*constant);
  const auto &[first, coefficient] = *polynomial.begin();
  if (polynomial.size() == 1 && first.size() == 1 && coefficient == 1)
    return getIndex(first.front());
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

Size IndexMath::add(Size lhs, Size rhs) { return build(plus(get(lhs), get(rhs), 1)); }
Size IndexMath::sub(Size lhs, Size rhs) { return build(plus(get(lhs), get(rhs), -1)); }
Size IndexMath::mul(Size lhs, Size rhs) { return build(times(get(lhs), get(rhs))); }

std::optional<Size> IndexMath::divide(Size lhs, Size rhs) {
  auto quotient = divideExactly(get(lhs), get(rhs));
  return quotient ? std::optional(build(*quotient)) : std::nullopt;
}

template <typename Op>
Size IndexMath::buildBinary(const char *name, Size lhs, Size rhs, bool nonNegative) {
  std::string key = name + getKey(get(lhs)) + "," + getKey(get(rhs));
  auto it = values.find(key);
  Value result = it != values.end() ? it->second : b.createOrFold<Op>(value(lhs), value(rhs));
  values[key] = result;
  if (auto constant = getConstantIntValue(result))
    return this->constant(*constant);
  if (nonNegative)
    markNonNegative(result);
  return result;
}

Size IndexMath::floorDiv(Size lhs, Size rhs) {
  if (auto quotient = divide(lhs, rhs))
    return *quotient;
  bool nonNegative = isAtLeast(lhs, 0);
  Size divisor = max(rhs, constant(1)); // a run-time size may be 0
  return nonNegative ? buildBinary<arith::DivUIOp>("floordiv", lhs, divisor, true)
                     : buildBinary<arith::FloorDivSIOp>("floordiv", lhs, divisor, false);
}

Size IndexMath::ceilDiv(Size lhs, Size rhs) {
  if (auto quotient = divide(lhs, rhs))
    return *quotient;
  bool nonNegative = isAtLeast(lhs, 0);
  return buildBinary<arith::CeilDivSIOp>("ceildiv", lhs, max(rhs, constant(1)), nonNegative);
}

Size IndexMath::min(Size lhs, Size rhs) {
  if (isLessOrEqual(lhs, rhs))
    return lhs;
  if (isLessOrEqual(rhs, lhs))
    return rhs;
  return buildBinary<arith::MinSIOp>("min", lhs, rhs, isAtLeast(lhs, 0) && isAtLeast(rhs, 0));
}

Size IndexMath::max(Size lhs, Size rhs) {
  if (isLessOrEqual(lhs, rhs))
    return rhs;
  if (isLessOrEqual(rhs, lhs))
    return lhs;
  return buildBinary<arith::MaxSIOp>("max", lhs, rhs, isAtLeast(lhs, 0) || isAtLeast(rhs, 0));
}

Size IndexMath::select(Value condition, Size ifTrue, Size ifFalse) {
  if (auto taken = decide(condition))
    return *taken ? ifTrue : ifFalse;
  if (equal(ifTrue, ifFalse))
    return ifTrue;
  return fromScalar(arith::SelectOp::create(b, condition, value(ifTrue), value(ifFalse)));
}

bool IndexMath::equal(Size lhs, Size rhs) { return get(lhs) == get(rhs); }

std::optional<int64_t> IndexMath::difference(Size lhs, Size rhs) { return getConstant(plus(get(lhs), get(rhs), -1)); }

bool IndexMath::isAtLeast(Size size, int64_t least) { return isAtLeast(get(size), least); }

bool IndexMath::isLessOrEqual(Size lhs, Size rhs) {
  auto left = getConstant(lhs), right = getConstant(rhs);
  return left && right ? *left <= *right : isAtLeast(plus(get(rhs), get(lhs), -1), 0);
}

bool IndexMath::isClampOf(Size size, Size of) {
  auto value = dyn_cast<Value>(size);
  auto min = value ? value.getDefiningOp<arith::MinSIOp>() : arith::MinSIOp();
  if (!min)
    return false;
  Polynomial lhs = getScalar(min.getLhs(), 0), rhs = getScalar(min.getRhs(), 0), whole = get(of);
  return (lhs == whole && getConstant(rhs).value_or(0) > 1) || (rhs == whole && getConstant(lhs).value_or(0) > 1);
}

Value IndexMath::compare(arith::CmpIPredicate predicate, Size lhs, Size rhs) {
  std::string key = "cmp" + std::to_string(static_cast<int>(predicate)) + getKey(get(lhs)) + "," + getKey(get(rhs));
  if (auto it = values.find(key); it != values.end())
    return it->second;
  return values[key] = simplify(arith::CmpIOp::create(b, predicate, value(lhs), value(rhs)));
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
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, *constant));
  auto cast = mlir::cast<Value>(size).getDefiningOp<arith::IndexCastOp>();
  if (cast && cast.getIn().getType() == type)
    return cast.getIn();
  return b.createOrFold<arith::IndexCastOp>(type, mlir::cast<Value>(size));
}

Size IndexMath::fromScalar(Value value) { return build(getScalar(value, 0)); }

std::optional<Size> IndexMath::hoist(Size size, Operation *scope) {
  Polynomial polynomial = get(size);
  for (const auto &[monomial, coefficient] : polynomial)
    for (unsigned atom : monomial)
      if (scope->isAncestor(atoms[atom].getParentRegion()->getParentOp()))
        return std::nullopt;
  return build(polynomial);
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

std::optional<bool> IndexMath::decideComparison(arith::CmpIOp compare) {
  if (!isSizeType(compare.getLhs().getType()))
    return std::nullopt;
  Polynomial lhs = getScalar(compare.getLhs(), 0), rhs = getScalar(compare.getRhs(), 0);
  Polynomial up = plus(rhs, lhs, -1), down = plus(lhs, rhs, -1);
  bool less = isAtLeast(up, 1), greater = isAtLeast(down, 1), same = lhs == rhs;
  bool atMost = isAtLeast(up, 0), atLeast = isAtLeast(down, 0);
  auto pick = [](bool yes, bool no) { return yes ? std::optional(true) : no ? std::optional(false) : std::nullopt; };
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::eq:
    return pick(same, less || greater);
  case arith::CmpIPredicate::ne:
    return pick(less || greater, same);
  case arith::CmpIPredicate::slt:
    return pick(less, atLeast);
  case arith::CmpIPredicate::sle:
    return pick(atMost, greater);
  case arith::CmpIPredicate::sgt:
    return pick(greater, atMost);
  case arith::CmpIPredicate::sge:
    return pick(atLeast, less);
  default:
    return std::nullopt;
  }
}

std::optional<bool> IndexMath::decide(Value condition) {
  APInt constant;
  if (matchPattern(condition, m_ConstantInt(&constant)))
    return !constant.isZero();
  Operation *op = condition.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return decideComparison(compare);
  if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op))
    return std::nullopt;
  std::optional<bool> lhs = decide(op->getOperand(0)), rhs = decide(op->getOperand(1));
  if (isa<arith::XOrIOp>(op))
    return lhs && rhs ? std::optional(*lhs != *rhs) : std::nullopt;
  bool decisive = isa<arith::OrIOp>(op);
  if (lhs == decisive || rhs == decisive)
    return decisive;
  return lhs && rhs ? std::optional(!decisive) : std::nullopt;
}

Value IndexMath::simplify(Value scalar) {
  Type type = scalar.getType();
  if (isa_and_nonnull<arith::ConstantOp>(scalar.getDefiningOp()))
    return scalar;
  if (type.isInteger(1)) {
    auto decided = decide(scalar);
    return decided ? arith::ConstantOp::create(b, b.getBoolAttr(*decided)).getResult() : scalar;
  }
  auto constant = isSizeType(type) ? getConstant(getScalar(scalar, 0)) : std::nullopt;
  return constant ? arith::ConstantOp::create(b, b.getIntegerAttr(type, *constant)).getResult() : scalar;
}

} // namespace hone::lowering
