// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which sizes a tensor may have. Sizes that values decide can be anything, and a product that wraps would be a buffer smaller
// than what is written to it: every tensor that a lowering makes passes here first. Products that one check bounds, or the
// runtime for an input, are not checked again.

#include "Lowering.h"

#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/runtime/program.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace hone::lowering {

/// What the bytes of a tensor must not exceed: more than any memory, and far from where products of a few bytes more would wrap.
static constexpr int64_t kMostBytes = int64_t{1} << 61;
/// The fixed part of a product in a check, at least: larger than in most tensors, so that those with the same run-time sizes
/// share a check. What is left of kMostBytes is what an input may have.
static constexpr int64_t kCommonBytes = kMostBytes / HONE_MAX_ELEMENTS;

void Lowerer::check(Operation *op, Value condition, const Twine &message, ArrayRef<Size> values) {
  APInt constant;
  if (matchPattern(condition, m_ConstantInt(&constant)) && !constant.isZero())
    return;
  if (!isNewCheck(condition))
    return;
  std::string where;
  if (auto name = dyn_cast<NameLoc>(op->getLoc()))
    where = name.getName().str() + ": ";
  SmallVector<Value> numbers;
  for (Size value : values)
    numbers.push_back(math.value(value));
  hrt::CheckOp::create(b, condition, where + message.str(), numbers);
}

LogicalResult Lowerer::requireNonNegative(Operation *op, ArrayRef<Size> sizes) {
  for (Size size : sizes) {
    if (math.isAtLeast(size, 0))
      continue;
    if (auto constant = IndexMath::getConstant(size))
      return op->emitOpError() << "expected a size not to be negative, but got " << *constant;
    check(op, math.compare(arith::CmpIPredicate::sge, size, math.constant(0)),
          "expected a size not to be negative, but got {}", size);
    math.assume(size, 0);
  }
  return success();
}

static int64_t getBytes(Type element) {
  if (auto complex = dyn_cast<ComplexType>(element))
    return 2 * getBytes(complex.getElementType());
  return element.isIntOrFloat() ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8) : 8;
}

/// "cannot allocate a tensor of 4x?xf32: too many elements", with `unknown` for sizes that are not known.
static std::string describeExcess(ArrayRef<Size> sizes, Type element, StringRef unknown) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "cannot allocate a tensor of ";
  for (Size size : sizes) {
    if (auto constant = IndexMath::getConstant(size))
      stream << *constant << "x";
    else
      stream << unknown << "x";
  }
  stream << element << ": too many elements";
  return text;
}

/// Whether each of `factors` is among `known`, as often.
static bool isPart(ArrayRef<Value> factors, ArrayRef<Value> known) {
  return llvm::all_of(factors,
                      [&](Value factor) { return llvm::count(factors, factor) <= llvm::count(known, factor); });
}

/// Whether the product of the factors, each counted as 1 at least, is `most` at most. In floating point it cannot wrap.
Value Lowerer::isProductAtMost(ArrayRef<Value> factors, int64_t most) {
  if (factors.size() == 1)
    return math.compare(arith::CmpIPredicate::sle, math.fromScalar(factors.front()), math.constant(most));
  Type f64 = b.getF64Type();
  Value one = arith::ConstantOp::create(b, b.getF64FloatAttr(1.0)), product;
  for (Value factor : factors) {
    Size size = math.fromScalar(factor);
    Value number = arith::SIToFPOp::create(b, f64, math.scalar(size, b.getI64Type()));
    if (!math.isAtLeast(size, 0))
      number = math::AbsFOp::create(b, number);
    number = arith::MaximumFOp::create(b, number, one);
    product = product ? arith::MulFOp::create(b, product, number) : number;
  }
  Value limit = arith::ConstantOp::create(b, b.getF64FloatAttr(static_cast<double>(most)));
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, product, limit);
}

LogicalResult Lowerer::requireSizes(Operation *op, ArrayRef<Size> sizes, Type element) {
  if (failed(requireNonNegative(op, sizes)))
    return failure();
  Product product{{}, getBytes(element), b.getInsertionBlock()->getParent()};
  for (Size size : sizes)
    math.factor(size, product.constant, product.factors);
  if (product.constant > kMostBytes)
    return op->emitOpError() << describeExcess(sizes, element, "?");
  bool isKnown = product.factors.empty() || llvm::any_of(products, [&](const Product &known) {
                   return known.constant >= product.constant && isPart(product.factors, known.factors) &&
                          known.region->isAncestor(product.region);
                 });
  if (isKnown)
    return success();
  product.constant = std::max<int64_t>(llvm::PowerOf2Ceil(product.constant), kCommonBytes);
  Value fits = isProductAtMost(product.factors, kMostBytes / product.constant);
  SmallVector<Size> unknown;
  llvm::copy_if(sizes, std::back_inserter(unknown), [](Size size) { return !IndexMath::getConstant(size); });
  check(op, fits, describeExcess(sizes, element, "{}"), unknown);
  products.push_back(std::move(product));
  return success();
}

void Lowerer::trustSizes(ArrayRef<Size> sizes) {
  Product product{{}, kCommonBytes, b.getInsertionBlock()->getParent()};
  for (Size size : sizes)
    math.factor(size, product.constant, product.factors);
  products.push_back(std::move(product));
}

} // namespace hone::lowering
