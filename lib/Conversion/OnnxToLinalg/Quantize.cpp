// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear quantization: one scale for a tensor, one for each index of an axis, or one for each block along an axis; and
// products of quantized matrices.

#include "Formula.h"
#include "Loops.h"

#include <cmath>

using namespace mlir;

namespace hone::lowering {

namespace {

/// How one scale (or zero point) is found for an element of the quantized tensor.
struct Granularity {
  enum Kind { Tensor, Axis, Block } kind = Tensor;
  int64_t axis = 0;
  int64_t blockSize = 0;
};

/// Least and largest value of an integer type.
struct Range {
  double least, most;
};

} // namespace

static Range getRange(Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  if (type.isUnsignedInteger())
    return {0, std::ldexp(1.0, width) - 1};
  return {-std::ldexp(1.0, width - 1), std::ldexp(1.0, width - 1) - 1};
}

static FailureOr<Granularity> getScaleGranularity(Node &node) {
  Granularity result;
  auto scale = node.type(1);
  int64_t rank = node.rank(0);
  bool single = scale.hasStaticShape() && scale.getNumElements() == 1;
  result.blockSize = node.integer("block_size", 0);
  if (scale.getRank() == 0 || (single && result.blockSize == 0))
    return result;
  auto axis = node.axis(node.integer("axis", 1), rank);
  if (failed(axis))
    return failure();
  result.axis = *axis;
  result.kind = result.blockSize > 0 ? Granularity::Block : Granularity::Axis;
  int64_t expected = result.kind == Granularity::Block ? rank : 1;
  if (scale.getRank() != expected)
    return node.fail() << "expected the scale to have " << expected << " dimensions, but got " << scale;
  return result;
}

/// The granularity of the scale and the zero point, whose sizes are checked where they are not broadcast.
static FailureOr<Granularity> getGranularity(Node &node) {
  auto result = getScaleGranularity(node);
  if (failed(result))
    return failure();
  for (unsigned input : {1, 2}) {
    if (!node.has(input))
      continue;
    StringRef what = input == 1 ? "the scale" : "the zero point";
    SmallVector<Size> sizes = result->kind == Granularity::Block ? node.sizes(node.in(0)) : node.sizes(node.in(input));
    if (result->kind == Granularity::Axis && sizes.size() != 1)
      return node.fail() << "expected " << what << " to have 1 dimension, but got " << node.type(input);
    if (result->kind == Granularity::Tensor)
      sizes.assign(sizes.size(), node.b.getIndexAttr(1));
    if (result->kind == Granularity::Block)
      sizes[result->axis] = node.math.ceilDiv(sizes[result->axis], node.b.getIndexAttr(result->blockSize));
    if (failed(requireShape(node, node.in(input), sizes, what,
                            result->kind == Granularity::Block ? "the blocks of x" : "[1]")))
      return failure();
  }
  return result;
}

/// `parameter` (a scale or a zero point) as a tensor that broadcasts to the sizes of input 0.
static Value spread(Node &node, Value parameter, const Granularity &granularity) {
  if (!parameter)
    return {};
  Builder &b = node.b;
  Type element = cast<RankedTensorType>(parameter.getType()).getElementType();
  switch (granularity.kind) {
  case Granularity::Tensor:
    return node.reshape(parameter, {});
  case Granularity::Axis: {
    SmallVector<Size> sizes(node.rank(0), b.getIndexAttr(1));
    sizes[granularity.axis] = node.size(parameter, 0);
    return node.reshape(parameter, sizes);
  }
  case Granularity::Block:
    return node.generate(node.sizes(node.in(0)), element, [&](Builder &inner, ValueRange at) -> Value {
      SmallVector<Value> block(at.begin(), at.end());
      Value size = arith::ConstantIndexOp::create(inner, granularity.blockSize);
      block[granularity.axis] = arith::DivUIOp::create(inner, at[granularity.axis], size);
      return tensor::ExtractOp::create(inner, parameter, block);
    });
  }
  llvm_unreachable("unknown granularity");
}

//===----------------------------------------------------------------------===//
// QuantizeLinear and DequantizeLinear
//===----------------------------------------------------------------------===//

/// Element type of the result of QuantizeLinear: the zero point's, else output_dtype, else uint8.
static Type getQuantizedType(Node &node) {
  if (node.has(2))
    return node.declared(2);
  int64_t given = node.integer("output_dtype", 0);
  return given ? onnxir::getElementType(given, node.op->getContext())
               : Type(IntegerType::get(node.op->getContext(), 8, IntegerType::Unsigned));
}

/// `x` rounded to even, shifted by an integer zero point, and clamped to the range of the type.
static Value quantizeToInteger(Builder &b, Number x, Value zero, Type type) {
  Range range = getRange(type);
  Number rounded = apply<math::RoundEvenOp>(x);
  if (zero)
    rounded = rounded + Number{&b, convertScalar(b, zero, type, x.value.getType())};
  Number clamped = min(max(rounded, rounded.with(range.least)), rounded.with(range.most));
  return convertScalar(b, clamped.value, x.value.getType(), type);
}

/// The type that a division by `scale` is computed in, and the type that its result is rounded to.
static std::pair<Type, Type> getPrecision(Node &node) {
  int64_t precision = node.integer("precision", 0);
  Type rounded = precision ? onnxir::getElementType(precision, node.op->getContext()) : node.declared(1);
  if (!isa_and_nonnull<FloatType>(rounded)) // an integer scale divides as f32
    rounded = node.b.getF32Type();
  return {getComputeType(rounded), rounded};
}

static LogicalResult lowerQuantizeLinear(Node &node) {
  auto granularity = getGranularity(node);
  Type to = getQuantizedType(node), from = node.declared(0), scaleType = node.declared(1);
  if (failed(granularity))
    return failure();
  if (!to || !to.isIntOrFloat())
    return node.fail() << "unsupported output_dtype " << node.integer("output_dtype", 0)
                       << "; supported: integers and floats of 8 bits and less";
  auto [compute, rounded] = getPrecision(node);
  CastOptions options;
  options.saturate = node.integer("saturate", 1) != 0;
  SmallVector<Value> tensors{node.in(0), spread(node, node.in(1), *granularity)};
  if (Value zero = spread(node, node.in(2), *granularity))
    tensors.push_back(zero);
  node.set(0, node.elementwiseOver(node.sizes(node.in(0)), tensors, withoutSign(to), [&](Builder &b, ValueRange x) {
    Number dividend{&b, convertScalar(b, x[0], from, compute)}, scale{&b, convertScalar(b, x[1], scaleType, compute)};
    Value quotient = convertScalar(b, (dividend / scale).value, compute, rounded);
    Number wide{&b, convertScalar(b, quotient, rounded, compute)};
    Value zero = x.size() > 2 ? x[2] : Value();
    if (!isa<FloatType>(to))
      return quantizeToInteger(b, wide, zero, to);
    if (zero)
      wide = wide + Number{&b, convertScalar(b, zero, to, compute)};
    return convertScalar(b, wide.value, compute, to, options);
  }));
  return success();
}

static LogicalResult lowerDequantizeLinear(Node &node) {
  auto granularity = getGranularity(node);
  if (failed(granularity))
    return failure();
  Type from = node.declared(0), scaleType = node.declared(1);
  int64_t given = node.integer("output_dtype", 0);
  Type to = given ? onnxir::getElementType(given, node.op->getContext()) : scaleType;
  if (!isa_and_nonnull<FloatType>(to))
    return node.fail() << "unsupported output type number " << given << "; supported: floats";
  Type compute = getComputeType(to);
  SmallVector<Value> tensors{node.in(0), spread(node, node.in(1), *granularity)};
  if (Value zero = spread(node, node.in(2), *granularity))
    tensors.push_back(zero);
  node.set(0, node.elementwiseOver(node.sizes(node.in(0)), tensors, withoutSign(to), [&](Builder &b, ValueRange x) {
    Number value{&b, convertScalar(b, x[0], from, compute)}, scale{&b, convertScalar(b, x[1], scaleType, compute)};
    if (x.size() > 2)
      value = value - Number{&b, convertScalar(b, x[2], from, compute)};
    return convertScalar(b, (value * scale).value, compute, to);
  }));
  return success();
}

//===----------------------------------------------------------------------===//
// DynamicQuantizeLinear
//===----------------------------------------------------------------------===//

template <typename Op>
static Value foldAll(Node &node, Value tensor) {
  // Zero is always in the range, so that it is quantized exactly.
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(tensor.getType()).getRank()));
  return node.reduce(tensor, axes, /*keep=*/false, node.zero(node.b.getF32Type()),
                     [](Builder &b, Value element, Value accumulator) { return Op::create(b, element, accumulator); });
}

/// To uint8, with the range of the tensor itself as scale and zero point.
static LogicalResult lowerDynamicQuantizeLinear(Node &node) {
  constexpr double kMost = 255;
  Value x = node.in(0);
  Type single = node.b.getF32Type(), byte = IntegerType::get(node.op->getContext(), 8, IntegerType::Unsigned);
  Value least = foldAll<arith::MinimumFOp>(node, x), most = foldAll<arith::MaximumFOp>(node, x);
  Value scale = node.elementwiseOver({}, {least, most}, single, [&](Builder &b, ValueRange bounds) {
    Number low{&b, bounds[0]}, high{&b, bounds[1]};
    return (select(low == high, low.with(1), high - low) / kMost).value;
  });
  Value zero = node.elementwiseOver({}, {least, scale}, single, [&](Builder &b, ValueRange v) {
    Number low{&b, v[0]}, by{&b, v[1]};
    return apply<math::RoundEvenOp>(min(max(-low / by, low.with(0)), low.with(kMost))).value;
  });
  node.set(0, node.elementwiseOver(node.sizes(x), {x, scale, zero}, node.b.getI8Type(), [&](Builder &b, ValueRange v) {
    Number rounded = apply<math::RoundEvenOp>(Number{&b, v[0]} / Number{&b, v[1]}) + Number{&b, v[2]};
    Number clamped = min(max(rounded, rounded.with(0)), rounded.with(kMost));
    return convertScalar(b, clamped.value, single, byte);
  }));
  node.set(1, scale);
  node.set(2, node.castElements(zero, node.b.getI8Type(), /*fromUnsigned=*/false, /*toUnsigned=*/true));
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// A zero point or scale of a matrix operand: one, one for each row of the left or column of the right operand (`isLeft`
/// says which), or one shaped like the operand with 1 in the other dimension.
static Value alongMatrix(Node &node, Value parameter, bool isLeft) {
  auto type = cast<RankedTensorType>(parameter.getType());
  if (type.getRank() != 1 || !isLeft || type.getDimSize(0) == 1)
    return parameter;
  return node.reshape(parameter, {node.size(parameter, 0), node.b.getIndexAttr(1)});
}

/// Integers of 32 bits: the operand less its zero point, which may be absent.
static Value shiftOperand(Node &node, unsigned operand, unsigned zeroPoint, bool isLeft) {
  Type wide = node.b.getI32Type(), from = node.declared(operand);
  SmallVector<Value> tensors{node.in(operand)};
  if (node.has(zeroPoint))
    tensors.push_back(alongMatrix(node, node.in(zeroPoint), isLeft));
  return node.elementwiseOver(node.sizes(node.in(operand)), tensors, wide, [&](Builder &b, ValueRange x) -> Value {
    Value value = convertScalar(b, x[0], from, wide);
    if (x.size() == 1)
      return value;
    return arith::SubIOp::create(b, value, convertScalar(b, x[1], node.declared(zeroPoint), wide));
  });
}

static LogicalResult lowerMatMulInteger(Node &node) {
  auto product =
      multiplyAnyRank(node, shiftOperand(node, 0, 2, /*isLeft=*/true), shiftOperand(node, 1, 3, /*isLeft=*/false));
  if (failed(product))
    return failure();
  node.set(0, *product);
  return success();
}

static LogicalResult lowerQLinearMatMul(Node &node) {
  Value lhs = shiftOperand(node, 0, 2, /*isLeft=*/true), rhs = shiftOperand(node, 3, 5, /*isLeft=*/false);
  auto product = multiplyAnyRank(node, lhs, rhs);
  if (failed(product))
    return failure();
  Type single = node.b.getF32Type(), to = node.declared(7);
  SmallVector<Value> tensors{*product, alongMatrix(node, node.in(1), true), alongMatrix(node, node.in(4), false),
                             alongMatrix(node, node.in(6), true), alongMatrix(node, node.in(7), true)};
  node.set(0, node.elementwiseOver(node.sizes(*product), tensors, withoutSign(to), [&](Builder &b, ValueRange x) {
    auto scale = [&](unsigned index, unsigned input) {
      return Number{&b, convertScalar(b, x[index], node.declared(input), single)};
    };
    Number sum{&b, convertScalar(b, x[0], b.getI32Type(), single)};
    return quantizeToInteger(b, sum * (scale(1, 1) * scale(2, 4) / scale(3, 6)), x[4], to);
  }));
  return success();
}

void addQuantizeLowerings(LoweringTable &table) {
  for (const char *domain : {"onnx.", "onnx.com.microsoft."}) {
    table[domain + std::string("DequantizeLinear")] = lowerDequantizeLinear;
    table[domain + std::string("QuantizeLinear")] = lowerQuantizeLinear;
  }
  table["onnx.DynamicQuantizeLinear"] = lowerDynamicQuantizeLinear;
  table["onnx.MatMulInteger"] = lowerMatMulInteger;
  table["onnx.QLinearMatMul"] = lowerQLinearMatMul;
}

} // namespace hone::lowering
