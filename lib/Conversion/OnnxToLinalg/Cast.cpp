// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions between element types: Cast, CastLike, BitCast, and what other families need of them.

#include "Formula.h"

#include <cmath>

using namespace mlir;

namespace hone::lowering {

Type getComputeType(Type element) {
  auto floating = dyn_cast<FloatType>(element);
  return floating && floating.getWidth() < 32 ? Type(Float32Type::get(element.getContext())) : element;
}

static bool isNarrowFloat(Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= 8; }

/// bool counts as unsigned: true is 1.
static bool isUnsignedType(Type type) { return type.isUnsignedInteger() || type.isInteger(1); }

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// Float to wider or narrower float, none of them in a byte.
static Value convertFloat(Builder &b, Value x, FloatType to) {
  auto from = cast<FloatType>(x.getType());
  if (from == to)
    return x;
  bool crossing = from.getWidth() == 16 && to.getWidth() == 16;
  if (crossing || (from.getWidth() == 64 && to.getWidth() == 16))
    x = convertFloat(b, x, b.getF32Type());
  if (cast<FloatType>(x.getType()).getWidth() < to.getWidth())
    return arith::ExtFOp::create(b, to, x);
  return x.getType() == to ? x : arith::TruncFOp::create(b, to, x).getResult();
}

/// The largest value of f32 or f64 below 2^bits.
static double getLargestBelow(FloatType type, unsigned bits) {
  return type.isF64() ? std::nextafter(std::ldexp(1.0, bits), 0.0) : std::nextafter(std::ldexp(1.0f, bits), 0.0f);
}

/// Float to an integer of at least 32 bits: truncated, the nearest value where out of range, 0 for NaN.
static Value convertToWideInteger(Builder &b, Number x, unsigned width, bool isUnsigned) {
  auto type = cast<FloatType>(x.value.getType());
  Type integer = b.getIntegerType(width);
  unsigned bits = isUnsigned ? width : width - 1;
  double least = isUnsigned ? 0.0 : -std::ldexp(1.0, bits);
  Number nan = select(x != x, x.with(0), x);
  Number clamped = min(max(nan, x.with(least)), x.with(getLargestBelow(type, bits)));
  if (isUnsigned)
    return arith::FPToUIOp::create(b, integer, clamped.value);
  return arith::FPToSIOp::create(b, integer, clamped.value);
}

static Value convertInteger(Builder &b, Value x, unsigned width, bool fromUnsigned) {
  unsigned from = x.getType().getIntOrFloatBitWidth();
  Type type = b.getIntegerType(width);
  if (from == width)
    return x;
  if (from > width)
    return b.createOrFold<arith::TruncIOp>(type, x);
  return fromUnsigned ? b.createOrFold<arith::ExtUIOp>(type, x) : b.createOrFold<arith::ExtSIOp>(type, x);
}

/// Keeps the low bits of a byte that holds a narrow integer, extended as its sign asks.
static Value wrapNarrow(Builder &b, Value byte, Type to) {
  unsigned width = to.getIntOrFloatBitWidth();
  if (width >= 8)
    return byte;
  auto constant = [&](int64_t value) { return arith::ConstantOp::create(b, b.getI8IntegerAttr(value)); };
  if (isUnsignedType(to))
    return arith::AndIOp::create(b, byte, constant((1 << width) - 1));
  Value high = arith::ShLIOp::create(b, byte, constant(8 - width));
  return arith::ShRSIOp::create(b, high, constant(8 - width));
}

static Value convertToBool(Builder &b, Value x) {
  if (isa<FloatType>(x.getType())) {
    Number number{&b, x};
    return number != 0.0;
  }
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(x.getType()));
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ne, x, zero);
}

static Value convertIntegerToFloat(Builder &b, Value x, bool isUnsigned, FloatType to) {
  FloatType through = to.getWidth() < 32 ? FloatType(b.getF32Type()) : to;
  Value value = isUnsigned ? arith::UIToFPOp::create(b, through, x).getResult()
                           : arith::SIToFPOp::create(b, through, x).getResult();
  return convertFloat(b, value, to);
}

static Value convertFloatToInteger(Builder &b, Value x, Type to) {
  unsigned width = to.getIntOrFloatBitWidth();
  bool isUnsigned = isUnsignedType(to);
  x = convertFloat(b, x, cast<FloatType>(getComputeType(x.getType())));
  if (width == 64)
    return convertToWideInteger(b, {&b, x}, 64, isUnsigned);
  // Unsigned and narrow ones through the next wider signed type, whose low bits they keep.
  unsigned through = width == 32 && isUnsigned ? 64 : 32;
  Value wide = convertToWideInteger(b, {&b, x}, through, false);
  return wrapNarrow(b, convertInteger(b, wide, std::max(width, 8u), false), to);
}

Value convertScalar(Builder &b, Value x, Type from, Type to, const CastOptions &options) {
  if (from == to)
    return x;
  if (isNarrowFloat(from)) {
    x = decodeNarrowFloat(b, x, cast<FloatType>(from));
    from = b.getF32Type();
  }
  bool isUnsigned = isUnsignedType(from);
  if (to.isInteger(1))
    return convertToBool(b, x);
  if (isNarrowFloat(to)) {
    Value single = convertScalar(b, x, from, b.getF32Type());
    return encodeNarrowFloat(b, single, cast<FloatType>(to), options);
  }
  if (auto floating = dyn_cast<FloatType>(to))
    return isa<FloatType>(from) ? convertFloat(b, x, floating) : convertIntegerToFloat(b, x, isUnsigned, floating);
  if (isa<FloatType>(from))
    return convertFloatToInteger(b, x, to);
  return wrapNarrow(b, convertInteger(b, x, std::max(to.getIntOrFloatBitWidth(), 8u), isUnsigned), to);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static Value convertElements(Node &node, Value tensor, Type from, Type to, const CastOptions &options = {}) {
  if (from == to)
    return tensor;
  return node.elementwise({tensor}, withoutSign(to),
                          [&](Builder &b, ValueRange x) { return convertScalar(b, x[0], from, to, options); });
}

/// The type as files say it that a lowered type and a sign stand for.
static Type withSign(Type type, bool isUnsigned) {
  bool changes = isUnsigned && type.isSignlessInteger() && !type.isInteger(1);
  return changes ? IntegerType::get(type.getContext(), type.getIntOrFloatBitWidth(), IntegerType::Unsigned) : type;
}

Value Node::castScalar(Builder &b, Value scalar, Type element, bool fromUnsigned, bool toUnsigned) {
  return convertScalar(b, scalar, withSign(scalar.getType(), fromUnsigned), withSign(element, toUnsigned));
}

Value Node::castElements(Value tensor, Type element, bool fromUnsigned, bool toUnsigned) {
  Type from = cast<RankedTensorType>(tensor.getType()).getElementType();
  return convertElements(*this, tensor, withSign(from, fromUnsigned), withSign(element, toUnsigned));
}

Value computeElementwise(Node &node, ArrayRef<unsigned> inputs, Type to, Formula formula) {
  SmallVector<Value> tensors;
  for (unsigned input : inputs)
    tensors.push_back(node.in(input));
  Type compute = getComputeType(node.declared(inputs.front()));
  return node.elementwise(tensors, withoutSign(to), [&](Builder &b, ValueRange x) {
    SmallVector<Number> numbers;
    for (auto [input, value] : llvm::zip(inputs, x))
      numbers.push_back({&b, convertScalar(b, value, node.declared(input), compute)});
    return convertScalar(b, formula(numbers).value, compute, to);
  });
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static LogicalResult checkNumeric(Node &node, Type type) {
  if (type && type.isIntOrFloat())
    return success();
  auto diagnostic = node.fail() << "unsupported element type ";
  if (type)
    diagnostic << type;
  return diagnostic << "; supported: floats, integers and bool";
}

static LogicalResult lowerCastTo(Node &node, Type to) {
  if (failed(checkNumeric(node, node.declared(0))) || failed(checkNumeric(node, to)))
    return failure();
  CastOptions options;
  options.saturate = node.integer("saturate", 1) != 0;
  options.roundMode = node.string("round_mode", "up");
  if (!llvm::is_contained({"up", "down", "nearest"}, options.roundMode))
    return node.fail() << "unsupported round_mode '" << options.roundMode << "'; supported: up, down, nearest";
  node.set(0, convertElements(node, node.in(0), node.declared(0), to, options));
  return success();
}

static LogicalResult lowerCast(Node &node) {
  return lowerCastTo(node, onnxir::getElementType(node.integer("to"), node.op->getContext()));
}

static LogicalResult lowerCastLike(Node &node) { return lowerCastTo(node, node.declared(1)); }

/// Width that BitCast compares: ONNX keeps a bool in a byte.
static unsigned getBitWidth(Type type) { return type.isInteger(1) ? 8 : type.getIntOrFloatBitWidth(); }

static LogicalResult lowerBitCast(Node &node) {
  Type from = node.declared(0), to = onnxir::getElementType(node.integer("to"), node.op->getContext());
  if (failed(checkNumeric(node, from)) || failed(checkNumeric(node, to)))
    return failure();
  if (getBitWidth(from) != getBitWidth(to))
    return node.fail() << "expected 'to' to have the width of " << from << ", but got " << to;
  Type held = withoutSign(to);
  node.set(0, node.elementwise({node.in(0)}, held, [&](Builder &b, ValueRange x) -> Value {
    if (held.isInteger(1))
      return x[0].getType() == held ? x[0] : convertToBool(b, x[0]);
    if (x[0].getType().isInteger(1))
      return arith::ExtUIOp::create(b, held, x[0]);
    Value bits = x[0].getType() == held ? x[0] : arith::BitcastOp::create(b, held, x[0]).getResult();
    // A narrow float's byte has zeros above it, as an unsigned integer's has.
    bool narrow = getBitWidth(to) < 8;
    Type holder = isa<FloatType>(to) ? IntegerType::get(to.getContext(), getBitWidth(to), IntegerType::Unsigned) : to;
    return narrow ? wrapNarrow(b, bits, holder) : bits;
  }));
  return success();
}

void addCastLowerings(LoweringTable &table) {
  table["onnx.Cast"] = lowerCast;
  table["onnx.CastLike"] = lowerCastLike;
  table["onnx.BitCast"] = lowerBitCast;
}

} // namespace hone::lowering
