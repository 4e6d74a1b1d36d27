// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Normalizations by statistics of the tensor itself or given ones. 16-bit floats are computed in f32 and rounded once.

#include "Normalize.h"

#include "Loops.h"

using namespace mlir;

namespace hone::lowering {

static Type getElement(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

Value narrow(Node &node, Value tensor, Type element) {
  return tensor && getElement(tensor) != element ? node.castElements(tensor, element, false, false) : tensor;
}

Value widen(Node &node, Value tensor) {
  return tensor ? narrow(node, tensor, getComputeType(getElement(tensor))) : tensor;
}

Value mapFloats(Node &node, Value tensor, llvm::function_ref<Number(Number)> formula) {
  return node.elementwiseOver(node.sizes(tensor), tensor, getElement(tensor),
                              [&](Builder &b, ValueRange x) { return formula({&b, x[0]}).value; });
}

Value combineWith(Node &node, Value lhs, Value rhs, llvm::function_ref<Number(Number, Number)> formula) {
  return node.elementwiseOver(node.sizes(lhs), {lhs, rhs}, getElement(lhs),
                              [&](Builder &b, ValueRange x) { return formula({&b, x[0]}, {&b, x[1]}).value; });
}

Value sumOver(Node &node, Value tensor, ArrayRef<int64_t> axes, bool keep) {
  return node.reduce(
      tensor, axes, keep, node.zero(getElement(tensor)),
      [](Builder &b, Value element, Value accumulator) { return arith::AddFOp::create(b, element, accumulator); });
}

Value meanOver(Node &node, Value tensor, ArrayRef<int64_t> axes, bool keep) {
  SmallVector<Size> sizes = node.sizes(tensor);
  Size count = node.b.getIndexAttr(1);
  for (int64_t axis : axes)
    count = node.math.mul(count, sizes[axis]);
  Value divisor = arith::SIToFPOp::create(node.b, getElement(tensor), node.math.scalar(count, node.b.getI64Type()));
  return mapFloats(node, sumOver(node, tensor, axes, keep), [&](Number x) { return x / Number{x.b, divisor}; });
}

static Number subtract(Number l, Number r) { return l - r; }
static Number multiply(Number l, Number r) { return l * r; }
static Number add(Number l, Number r) { return l + r; }

/// A vector along dimension 1 of `rank` dimensions, in the type that is computed in.
static Value alongChannels(Node &node, Value vector, int64_t rank) {
  SmallVector<Size> sizes(rank - 1, node.b.getIndexAttr(1));
  sizes[0] = node.size(vector, 0);
  return node.reshape(widen(node, vector), sizes);
}

/// x * scale + bias, either of which may be absent, as the element type of the operator.
static Value scaleAndShift(Node &node, Value x, Value scale, Value bias) {
  if (scale)
    x = combineWith(node, x, scale, multiply);
  if (bias)
    x = combineWith(node, x, bias, add);
  return narrow(node, x, node.element(0));
}

static SmallVector<int64_t> axesFrom(int64_t first, int64_t rank) {
  return llvm::to_vector(llvm::seq<int64_t>(first, rank));
}

namespace {

/// A tensor less its mean over some axes, and divided by its deviation; the statistics keep the axes with size 1.
struct Standardized {
  Value result, mean, inverseDeviation;
};

} // namespace

/// With `centers` off the root of the mean square takes the place of the deviation, and there is no mean.
static Standardized standardize(Node &node, Value x, ArrayRef<int64_t> axes, bool centers) {
  Standardized parts;
  double epsilon = node.real("epsilon", 1e-5);
  x = widen(node, x);
  if (centers) {
    parts.mean = meanOver(node, x, axes, /*keep=*/true);
    x = combineWith(node, x, parts.mean, subtract);
  }
  Value squares = mapFloats(node, x, [](Number n) { return n * n; });
  parts.inverseDeviation =
      mapFloats(node, meanOver(node, squares, axes, /*keep=*/true), [&](Number n) { return 1.0 / sqrt(n + epsilon); });
  parts.result = combineWith(node, x, parts.inverseDeviation, multiply);
  return parts;
}

//===----------------------------------------------------------------------===//
// Over the last axes
//===----------------------------------------------------------------------===//

/// LayerNormalization and RMSNormalization of `x`; the bias may be absent.
static LogicalResult normalizeLast(Node &node, Value x, Value scale, Value bias, bool centers, int meanResult,
                                   int deviationResult) {
  int64_t rank = cast<RankedTensorType>(x.getType()).getRank();
  auto axis = node.axis(node.integer("axis", -1), rank);
  if (failed(axis))
    return failure();
  Standardized parts = standardize(node, x, axesFrom(*axis, rank), centers);
  auto setStatistic = [&](int result, Value statistic) {
    if (result < 0 || !statistic || !node.wants(result))
      return;
    Type element = node.resultElement(result);
    node.set(result, element ? narrow(node, statistic, element) : statistic);
  };
  setStatistic(meanResult, parts.mean);
  setStatistic(deviationResult, parts.inverseDeviation);
  node.set(0, scaleAndShift(node, parts.result, widen(node, scale), widen(node, bias)));
  return success();
}

static LogicalResult lowerLayerNormalization(Node &node) {
  return normalizeLast(node, node.in(0), node.in(1), node.in(2), /*centers=*/true, 1, 2);
}

static LogicalResult lowerRMSNormalization(Node &node) {
  return normalizeLast(node, node.in(0), node.in(1), {}, /*centers=*/false, -1, 1);
}

/// The sum of input, skip and bias (which may be absent) is normalized, and is result 3 itself.
static Value addSkip(Node &node, Value bias) {
  Value sum = combineWith(node, widen(node, node.in(0)), widen(node, node.in(1)), add);
  if (bias)
    sum = combineWith(node, sum, widen(node, bias), add);
  if (node.wants(3))
    node.set(3, narrow(node, sum, node.element(0)));
  return sum;
}

static LogicalResult lowerSkipLayerNormalization(Node &node) {
  return normalizeLast(node, addSkip(node, node.in(4)), node.in(2), node.in(3), /*centers=*/true, 1, 2);
}

static LogicalResult lowerSkipSimplifiedLayerNormalization(Node &node) {
  return normalizeLast(node, addSkip(node, node.in(3)), node.in(2), {}, /*centers=*/false, -1, 2);
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

static LogicalResult checkRank(Node &node, int64_t least) {
  if (node.rank(0) >= least)
    return success();
  return node.fail() << "expected a tensor of at least " << least << " dimensions, but got " << node.type(0);
}

static LogicalResult lowerBatchNormalization(Node &node) {
  if (node.integer("training_mode", 0) || node.wants(1))
    return node.fail() << "unsupported training of statistics; supported: inference with given ones";
  if (failed(checkRank(node, 2)))
    return failure();
  int64_t rank = node.rank(0);
  double epsilon = node.real("epsilon", 1e-5);
  Value mean = alongChannels(node, node.in(3), rank), variance = alongChannels(node, node.in(4), rank);
  Value inverse = mapFloats(node, variance, [&](Number n) { return 1.0 / sqrt(n + epsilon); });
  Value x = combineWith(node, widen(node, node.in(0)), narrow(node, mean, getComputeType(node.element(0))), subtract);
  x = combineWith(node, x, narrow(node, inverse, getElement(x)), multiply);
  node.set(0, scaleAndShift(node, x, narrow(node, alongChannels(node, node.in(1), rank), getElement(x)),
                            narrow(node, alongChannels(node, node.in(2), rank), getElement(x))));
  return success();
}

static LogicalResult lowerInstanceNormalization(Node &node) {
  if (failed(checkRank(node, 3)))
    return failure();
  int64_t rank = node.rank(0);
  Standardized parts = standardize(node, node.in(0), axesFrom(2, rank), /*centers=*/true);
  node.set(0, scaleAndShift(node, parts.result, alongChannels(node, node.in(1), rank),
                            alongChannels(node, node.in(2), rank)));
  return success();
}

/// Scale and bias belong to channels since opset 21, and to groups before.
static LogicalResult lowerGroupNormalization(Node &node) {
  int64_t groups = node.integer("num_groups", 0), rank = node.rank(0);
  if (failed(checkRank(node, 2)))
    return failure();
  SmallVector<Size> sizes = node.sizes(node.in(0));
  auto channels = IndexMath::getConstant(sizes[1]);
  if (groups < 1 || (channels && *channels % groups != 0))
    return node.fail() << "expected num_groups to divide the channels of " << node.type(0) << ", but got " << groups;
  SmallVector<Size> grouped{sizes[0], node.b.getIndexAttr(groups),
                            node.math.floorDiv(sizes[1], node.b.getIndexAttr(groups))};
  grouped.append(sizes.begin() + 2, sizes.end());
  Value x = standardize(node, node.reshape(node.in(0), grouped), axesFrom(2, rank + 1), /*centers=*/true).result;
  bool byChannel = node.opset() == 0 || node.opset() >= 21;
  Value scale = alongChannels(node, node.in(1), byChannel ? rank : rank + 1);
  Value bias = alongChannels(node, node.in(2), byChannel ? rank : rank + 1);
  if (byChannel)
    node.set(0, scaleAndShift(node, node.reshape(x, sizes), scale, bias));
  else
    node.set(0, node.reshape(scaleAndShift(node, x, scale, bias), sizes));
  return success();
}

/// Local response normalization: squares are summed over `size` channels around each.
static LogicalResult lowerLRN(Node &node) {
  if (failed(checkRank(node, 2)))
    return failure();
  double alpha = node.real("alpha", 1e-4), beta = node.real("beta", 0.75), bias = node.real("bias", 1);
  int64_t window = node.integer("size", 1), before = (window - 1) / 2;
  if (window < 1)
    return node.fail() << "expected size to be positive, but got " << window;
  Value x = widen(node, node.in(0));
  SmallVector<Size> sizes = node.sizes(x);
  Value channels = node.math.value(sizes[1]);
  Size span = node.b.getIndexAttr(window);
  Value sums = accumulate(node, sizes, span, {}, node.zero(getElement(x)), [&](Builder &b, ValueRange, Value total) {
    SmallVector<Value> at;
    for (size_t d = 0; d < sizes.size(); ++d)
      at.push_back(linalg::IndexOp::create(b, d));
    Value offset =
        arith::SubIOp::create(b, linalg::IndexOp::create(b, sizes.size()), arith::ConstantIndexOp::create(b, before));
    Value channel = arith::AddIOp::create(b, at[1], offset);
    Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, channel, channels);
    at[1] = arith::SelectOp::create(b, isInside, channel, at[1]);
    Number element{&b, tensor::ExtractOp::create(b, x, at)}, sum{&b, total};
    return select(isInside, sum + element * element, sum).value;
  });
  Value result = combineWith(node, x, sums, [&](Number n, Number sum) {
    Number base = bias + (alpha / static_cast<double>(window)) * sum;
    return n / pow(base, base.with(beta));
  });
  node.set(0, narrow(node, result, node.element(0)));
  return success();
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

static LogicalResult lowerLpNormalization(Node &node) {
  auto axis = node.axis(node.integer("axis", -1), node.rank(0));
  if (failed(axis))
    return failure();
  int64_t p = node.integer("p", 2);
  if (p != 1 && p != 2)
    return node.fail() << "unsupported p " << p << "; supported: 1, 2";
  Value x = widen(node, node.in(0));
  Value powers = mapFloats(node, x, [&](Number n) { return p == 1 ? abs(n) : n * n; });
  Value sums = sumOver(node, powers, *axis, /*keep=*/true);
  Value result = combineWith(node, x, sums, [&](Number n, Number sum) {
    return select(sum == 0.0, n.with(0), n / (p == 1 ? sum : sqrt(sum)));
  });
  node.set(0, narrow(node, result, node.element(0)));
  return success();
}

static LogicalResult lowerMeanVarianceNormalization(Node &node) {
  SmallVector<int64_t> axes;
  for (int64_t given : node.integers("axes").value_or(SmallVector<int64_t>{0, 2, 3})) {
    auto axis = node.axis(given, node.rank(0));
    if (failed(axis))
      return failure();
    axes.push_back(*axis);
  }
  constexpr double kEpsilon = 1e-9; // the operator's own, added to the deviation
  Value x = widen(node, node.in(0));
  Value centered = combineWith(node, x, meanOver(node, x, axes, /*keep=*/true), subtract);
  Value squares = mapFloats(node, centered, [](Number n) { return n * n; });
  Value variance = meanOver(node, squares, axes, /*keep=*/true);
  Value result = combineWith(node, centered, variance, [](Number n, Number v) { return n / (sqrt(v) + kEpsilon); });
  node.set(0, narrow(node, result, node.element(0)));
  return success();
}

void addNormalizeLowerings(LoweringTable &table) {
  table["onnx.BatchNormalization"] = lowerBatchNormalization;
  table["onnx.GroupNormalization"] = lowerGroupNormalization;
  table["onnx.InstanceNormalization"] = lowerInstanceNormalization;
  table["onnx.LRN"] = lowerLRN;
  table["onnx.LayerNormalization"] = lowerLayerNormalization;
  table["onnx.LpNormalization"] = lowerLpNormalization;
  table["onnx.MeanVarianceNormalization"] = lowerMeanVarianceNormalization;
  table["onnx.RMSNormalization"] = lowerRMSNormalization;
  table["onnx.SimplifiedLayerNormalization"] = lowerRMSNormalization;
  table["onnx.com.microsoft.SimplifiedLayerNormalization"] = lowerRMSNormalization;
  table["onnx.com.microsoft.SkipLayerNormalization"] = lowerSkipLayerNormalization;
  table["onnx.com.microsoft.SkipSimplifiedLayerNormalization"] = lowerSkipSimplifiedLayerNormalization;
}

} // namespace hone::lowering
