// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions of integers of 8 bits: ConvInteger and QLinearConv.

#include "ConstantWeights.h"
#include "Convolve.h"

using namespace mlir;

namespace hone::lowering {

/// Integer elements as i32, less the zero point, which is one value or one a slice of dimension `dim`.
static FailureOr<Value> subtractZero(Node &node, unsigned input, unsigned zero, size_t dim) {
  bool isUnsigned = node.isUnsigned(input);
  auto widen = [=](Builder &b, Value x) -> Value {
    if (isUnsigned)
      return arith::ExtUIOp::create(b, b.getI32Type(), x);
    return arith::ExtSIOp::create(b, b.getI32Type(), x);
  };
  Value x = node.in(input);
  SmallVector<Value> operands = {x};
  if (Value point = node.in(zero)) {
    if (node.rank(zero) == 1 && IndexMath::getConstant(node.size(point, 0)) != 1) {
      if (failed(requireEqual(node, node.size(point, 0), node.size(x, dim),
                              "the zero points and the slices they belong to")))
        return failure();
      SmallVector<Size> column(node.rank(input) - dim, node.b.getIndexAttr(1));
      column[0] = node.size(x, dim);
      point = node.reshape(point, column);
    }
    operands.push_back(point);
  }
  return node.elementwiseOver(node.sizes(x), operands, node.b.getI32Type(), [&](Builder &b, ValueRange v) -> Value {
    return v.size() == 1 ? widen(b, v[0]) : Value(arith::SubIOp::create(b, widen(b, v[0]), widen(b, v[1])));
  });
}

/// The integers of a constant weight [M, ...] less its zero points, one or one for each of M; nothing for a weight that is no constant.
static std::optional<ConstantEvaluator::Array> evaluateWeight(ConstantEvaluator &constants, Node &node, unsigned input,
                                                              unsigned zero) {
  auto weight = constants.evaluate(node.op->getOperand(input));
  if (!weight || weight->elements.empty() || !node.in(zero))
    return weight;
  auto points = constants.evaluate(node.op->getOperand(zero));
  size_t outputs = weight->shape.front(), each = weight->elements.size() / outputs;
  if (!points || (points->elements.size() != 1 && points->elements.size() != outputs))
    return std::nullopt;
  for (auto [i, element] : llvm::enumerate(weight->elements))
    element -= points->elements[points->elements.size() == 1 ? 0 : i / each];
  return weight;
}

/// Input channels [first, first + count) of a weight [M, C, kernel...].
static ConstantEvaluator::Array takeChannels(const ConstantEvaluator::Array &weight, int64_t first, int64_t count) {
  ConstantEvaluator::Array part{weight.shape, {}};
  part.shape[1] = count;
  int64_t taps = llvm::product_of(ArrayRef(weight.shape).drop_front(2));
  for (int64_t m = 0; m < weight.shape[0]; ++m)
    llvm::append_range(part.elements,
                       ArrayRef(weight.elements).slice((m * weight.shape[1] + first) * taps, count * taps));
  return part;
}

constexpr int64_t kMostMagnitude = 255;          // of elements of x and of weights
constexpr int64_t kMostExact = int64_t(1) << 24; // to which f32 has every integer

/// How many input channels of the weight, from `first` on, give sums that f32 has, whatever x is.
static int64_t countExactChannels(const ConstantEvaluator::Array &weight, int64_t first) {
  int64_t inputs = weight.shape[1], taps = llvm::product_of(ArrayRef(weight.shape).drop_front(2)),
          fewest = inputs - first;
  for (int64_t output = 0; output < weight.shape[0]; ++output) {
    int64_t sum = 0;
    for (int64_t channel = 0; channel < fewest; ++channel) {
      ArrayRef row = ArrayRef(weight.elements).slice((output * inputs + first + channel) * taps, taps);
      for (float element : row)
        sum += static_cast<int64_t>(std::abs(element)) * kMostMagnitude;
      if (sum > kMostExact)
        fewest = channel;
    }
  }
  return fewest;
}

/// The convolution of i32 tensors whose elements have at most 255 as magnitude, as one of f32: sums that it has are exact. Where they may be
/// larger, parts of the channels are summed in i32. Null where there is no kernel for it.
/// `input` and `zero` are the node's inputs of the weight and its zero points: of constants, the parts are parameters.
static FailureOr<Value> convolveExactly(Node &node, Value x, Value weight, Value bias, unsigned input, unsigned zero) {
  auto shape = getConstants(node.sizes(weight));
  int64_t groups = node.integer("group", 1);
  if (!shape || shape->size() < 3 || llvm::is_contained(*shape, 0))
    return convolve(node, x, weight, bias);
  ConstantEvaluator constants(node);
  auto known = evaluateWeight(constants, node, input, zero);
  auto countFrom = [&](int64_t first) {
    int64_t taps = llvm::product_of(ArrayRef(*shape).drop_front(2)), left = (*shape)[1] - first;
    return known ? countExactChannels(*known, first)
                 : std::min(left, kMostExact / (kMostMagnitude * kMostMagnitude) / taps);
  };
  SmallVector<int64_t> counts; // of channels of each part
  for (int64_t first = 0; first < (*shape)[1]; first += counts.back()) {
    counts.push_back(countFrom(first));
    if (counts.back() == 0 || (groups > 1 && counts.back() < (*shape)[1]))
      return convolve(node, x, weight, bias);
  }
  auto toFloat = [&](Value tensor) {
    return node.elementwiseOver(node.sizes(tensor), tensor, node.b.getF32Type(), [](Builder &b, ValueRange v) -> Value {
      return arith::SIToFPOp::create(b, b.getF32Type(), v[0]);
    });
  };
  x = toFloat(x);
  if (!known)
    weight = toFloat(weight);
  auto getWeight = [&](int64_t first, int64_t count) -> Value {
    if (known) {
      ConstantEvaluator::Array part = takeChannels(*known, first, count);
      return constants.addParam(node.op->getOperand(input), part.shape, part.elements, first);
    }
    bool isAll = count == (*shape)[1];
    return isAll ? weight : sliceAxis(node, weight, 1, node.b.getIndexAttr(first), node.b.getIndexAttr(count));
  };
  Value total;
  int64_t first = 0;
  for (int64_t count : counts) {
    Value window =
        count == (*shape)[1] ? x : sliceAxis(node, x, 1, node.b.getIndexAttr(first), node.b.getIndexAttr(count));
    auto part = convolve(node, window, getWeight(first, count), {});
    first += count;
    if (failed(part))
      return failure();
    if (auto op = part->getDefiningOp<ConvolutionOp>())
      op.setExact(true);
    SmallVector<Value> terms{*part};
    if (total)
      terms.push_back(total);
    total = node.elementwiseOver(node.sizes(*part), terms, node.b.getI32Type(), [](Builder &b, ValueRange v) -> Value {
      Value sum = arith::FPToSIOp::create(b, b.getI32Type(), v[0]);
      return v.size() == 1 ? sum : Value(arith::AddIOp::create(b, sum, v[1]));
    });
  }
  return addBias(node, total, bias);
}

static LogicalResult lowerConvInteger(Node &node) {
  auto x = subtractZero(node, 0, 2, 1), weight = subtractZero(node, 1, 3, 0);
  if (failed(x) || failed(weight))
    return failure();
  auto result = convolveExactly(node, *x, *weight, {}, 1, 3);
  if (failed(result))
    return failure();
  node.set(0, *result);
  return success();
}

/// `sum * (x_scale * w_scale / y_scale)`, rounded to even, plus the zero point, clamped to the result's type.
static Value requantize(Node &node, Value sum) {
  Type f32 = node.b.getF32Type(), element = node.element(7);
  bool isUnsigned = node.isUnsigned(7);
  int64_t bits = element.getIntOrFloatBitWidth(), least = isUnsigned ? 0 : -(1ll << (bits - 1));
  Value low = node.constant(static_cast<double>(least), f32);
  Value high = node.constant(static_cast<double>(least + (1ll << bits) - 1), f32);
  Value weightScale = node.in(4);
  if (node.rank(4) == 1 && IndexMath::getConstant(node.size(weightScale, 0)) != 1) {
    SmallVector<Size> column(node.sizes(sum).size() - 1, node.b.getIndexAttr(1));
    column[0] = node.size(weightScale, 0);
    weightScale = node.reshape(weightScale, column);
  }
  return node.elementwiseOver(
      node.sizes(sum), {sum, node.in(1), weightScale, node.in(6), node.in(7)}, element,
      [&](Builder &b, ValueRange v) -> Value {
        Value scale = arith::DivFOp::create(b, arith::MulFOp::create(b, v[1], v[2]), v[3]);
        Value real = arith::MulFOp::create(b, arith::SIToFPOp::create(b, f32, v[0]), scale);
        Value zero = isUnsigned ? Value(arith::UIToFPOp::create(b, f32, v[4])) : arith::SIToFPOp::create(b, f32, v[4]);
        real = arith::AddFOp::create(b, math::RoundEvenOp::create(b, real), zero);
        real = arith::MinimumFOp::create(b, arith::MaximumFOp::create(b, real, low), high);
        return arith::TruncIOp::create(b, element, arith::FPToSIOp::create(b, b.getI32Type(), real));
      });
}

static LogicalResult lowerQLinearConv(Node &node) {
  auto x = subtractZero(node, 0, 2, 1), weight = subtractZero(node, 3, 5, 0);
  if (failed(x) || failed(weight))
    return failure();
  auto sum = convolveExactly(node, *x, *weight, node.in(8), 3, 5);
  if (failed(sum))
    return failure();
  node.set(0, requantize(node, *sum));
  return success();
}

void addIntegerConvLowerings(LoweringTable &table) {
  table["onnx.ConvInteger"] = lowerConvInteger;
  table["onnx.QLinearConv"] = lowerQLinearConv;
}

} // namespace hone::lowering
