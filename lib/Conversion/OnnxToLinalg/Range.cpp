// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Range: how many numbers there are from start to before limit is what the inputs say, so that none of the arithmetic on them may wrap.

#include "Indices.h"

using namespace mlir;

namespace hone::lowering {

/// `high` - `low`, with a check that it does not wrap.
static Size getSpan(Node &node, Size low, Size high) {
  IndexMath &math = node.math;
  Size span = math.sub(high, low), zero = math.constant(0);
  bool sameSign = math.isAtLeast(low, 0) && math.isAtLeast(high, 0); // sizes do not lie far apart
  if (sameSign || IndexMath::getConstant(span))
    return span;
  Value rises = compare(node, arith::CmpIPredicate::sgt, high, low);
  Value isPositive = compare(node, arith::CmpIPredicate::sgt, span, zero);
  node.check(arith::CmpIOp::create(node.b, arith::CmpIPredicate::eq, rises, isPositive),
             "expected {} and {} to be less than 2^63 apart", {low, high});
  return span;
}

/// How many numbers there are from `start` to before `limit` by `delta`.
static Size countRange(Node &node, Size start, Size limit, Size delta) {
  IndexMath &math = node.math;
  Size none = math.constant(0);
  auto count = [&](Size span, Size step) { return math.max(math.ceilDiv(span, step), none); };
  if (math.isAtLeast(delta, 1))
    return count(getSpan(node, start, limit), delta);
  Size down = getSpan(node, limit, start), back = math.sub(none, delta);
  if (math.isAtLeast(back, 1))
    return count(down, back);
  Value zero = math.value(none), step = math.value(delta);
  node.check(arith::CmpIOp::create(node.b, arith::CmpIPredicate::ne, step, zero), "expected delta not to be 0");
  Value rises = arith::CmpIOp::create(node.b, arith::CmpIPredicate::sgt, step, zero);
  // The least of all steps has no opposite; half of it goes as far beyond any limit.
  back = math.sub(none, math.max(delta, math.constant(std::numeric_limits<int64_t>::min() / 2)));
  return math.select(rises, count(getSpan(node, start, limit), delta), count(down, back));
}

static LogicalResult lowerIntegerRange(Node &node, Size start, Size limit, Size delta) {
  IndexMath &math = node.math;
  Type type = node.element(0);
  if (IndexMath::getConstant(delta) == 0)
    return node.fail() << "expected delta not to be 0";
  Size count = countRange(node, start, limit, delta);
  auto fixed = IndexMath::getConstant(count);
  if (fixed && isScalarShape(RankedTensorType::get(*fixed, type))) {
    SmallVector<Value> values;
    for (int64_t i = 0; i < *fixed; ++i)
      values.push_back(math.scalar(math.add(start, math.mul(delta, math.constant(i))), type));
    node.set(0, node.fromScalars(RankedTensorType::get(*fixed, type), values));
    return success();
  }
  Value first = math.scalar(start, type), step = math.scalar(delta, type);
  node.set(0, node.generate(count, type, [&](Builder &b, ValueRange at) -> Value {
    Value index = arith::IndexCastOp::create(b, type, at[0]);
    return b.createOrFold<arith::AddIOp>(first, b.createOrFold<arith::MulIOp>(index, step));
  }));
  return success();
}

static Value extend(Builder &b, Value value, FloatType type) {
  return value.getType() == type ? value : arith::ExtFOp::create(b, type, value).getResult();
}

/// Counts in double precision as onnxruntime does; elements of narrow floats are computed in f32 (attribute stash_type).
static LogicalResult lowerFloatRange(Node &node, Value start, Value limit, Value delta) {
  Builder &b = node.b;
  auto type = cast<FloatType>(start.getType());
  FloatType wide = b.getF64Type(), compute = type.getWidth() < 32 ? FloatType(b.getF32Type()) : type;
  Value first = extend(b, start, compute), step = extend(b, delta, compute);
  Value span = arith::SubFOp::create(b, extend(b, limit, compute), first);
  Value count = math::CeilOp::create(b, arith::DivFOp::create(b, extend(b, span, wide), extend(b, step, wide)));
  node.check(arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, step, node.constant(0, compute)),
             "expected delta not to be 0");
  count = arith::MaximumFOp::create(b, count, node.constant(0, wide));
  Value most = node.constant(static_cast<double>(kMostElements), wide);
  node.check(arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, count, most), // not of what is not a number
             "expected start, limit and delta to give at most " + Twine(kMostElements) + " elements");
  Value whole = arith::FPToSIOp::create(b, b.getI64Type(), count);
  Size size = node.math.fromScalar(b.createOrFold<arith::IndexCastOp>(b.getIndexType(), whole));
  node.set(0, node.generate(size, type, [&](Builder &inner, ValueRange at) -> Value {
    Value index = arith::IndexCastOp::create(inner, inner.getI64Type(), at[0]);
    Value offset = arith::MulFOp::create(inner, arith::SIToFPOp::create(inner, compute, index), step);
    Value element = arith::AddFOp::create(inner, first, offset);
    return compute == type ? element : arith::TruncFOp::create(inner, type, element).getResult();
  }));
  return success();
}

static LogicalResult lowerRange(Node &node) {
  SmallVector<Value> bounds;
  for (unsigned i = 0; i < 3; ++i) {
    auto scalar = getScalar(node, i);
    if (failed(scalar))
      return failure();
    bounds.push_back(*scalar);
  }
  if (isa<FloatType>(node.element(0)))
    return lowerFloatRange(node, bounds[0], bounds[1], bounds[2]);
  IndexMath &math = node.math;
  return lowerIntegerRange(node, math.fromScalar(bounds[0]), math.fromScalar(bounds[1]), math.fromScalar(bounds[2]));
}

void addRangeLowerings(LoweringTable &table) { table["onnx.Range"] = lowerRange; }

} // namespace hone::lowering
