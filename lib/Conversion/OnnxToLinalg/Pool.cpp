// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Poolings: MaxPool with its indices, AveragePool, LpPool, their global forms, and MaxUnpool.

#include "Indices.h"
#include "Window.h"

#include "hone/Dialect/Hone/HoneOps.h"

using namespace mlir;

namespace hone::lowering {

/// The least value of a type: minus infinity for floats.
static Value getLeast(Node &node, Type element, bool isUnsigned) {
  if (auto type = dyn_cast<FloatType>(element))
    return arith::ConstantOp::create(
        node.b, FloatAttr::get(type, APFloat::getInf(type.getFloatSemantics(), /*Negative=*/true)));
  unsigned width = element.getIntOrFloatBitWidth();
  APInt least = isUnsigned ? APInt::getZero(width) : APInt::getSignedMinValue(width);
  return arith::ConstantOp::create(node.b, IntegerAttr::get(element, least));
}

static Value takeGreater(Builder &b, Value lhs, Value rhs, bool isUnsigned) {
  if (isa<FloatType>(lhs.getType()))
    return arith::MaximumFOp::create(b, lhs, rhs);
  return isUnsigned ? Value(arith::MaxUIOp::create(b, lhs, rhs)) : Value(arith::MaxSIOp::create(b, lhs, rhs));
}

/// `[N, C, output...]` from the windows of the padded `x`.
static Value foldWindows(Node &node, Value x, const Window &window, Value initial, Node::ReduceBody body) {
  unsigned rank = window.rank(), loops = 2 + 2 * rank;
  SmallVector<AffineExpr> exprs = {node.b.getAffineDimExpr(0), node.b.getAffineDimExpr(1)};
  llvm::append_range(exprs, window.positions(node, 2, 2 + rank));
  SmallVector<Size> sizes = node.sizes(x);
  sizes.truncate(2);
  llvm::append_range(sizes, window.output);
  return accumulate(node, sizes, window.kernel, Operand{x, AffineMap::get(loops, 0, exprs, node.b.getContext())},
                    initial, [&](Builder &b, ValueRange v, Value total) { return body(b, v[0], total); });
}

/// What windows make of floats, as an operation of its own in f32; null for other elements.
static Value createPool(Node &node, Value x, const Window &window, PoolKind kind) {
  Type element = cast<RankedTensorType>(x.getType()).getElementType(), f32 = node.b.getF32Type();
  auto kernel = getConstants(window.kernel), low = getConstants(window.low);
  if (!isHoneFloat(element) || !kernel)
    return {};
  if (!low) { // only a call knows how much padding there is
    x = window.pad(node, x, kind == PoolKind::Max ? getLeast(node, element, false) : node.zero(element));
    low = SmallVector<int64_t>(window.rank(), 0);
  }
  SmallVector<Size> sizes = node.sizes(x);
  sizes.truncate(2);
  llvm::append_range(sizes, window.output);
  node.isBroken = node.isBroken || failed(node.lowerer.requireSizes(node.op, sizes, f32));
  Value result = PoolOp::create(node.b, getTensorType(sizes, f32), kind, convertFloats(node, x, f32),
                                window.getOpenSizes(node), *kernel, window.strides, window.dilations, *low);
  node.lowerer.setSizes(result, sizes);
  return result;
}

static FailureOr<Window> getPoolWindow(Node &node) {
  if (node.rank(0) < 3) {
    node.fail() << "expected a batch, channels and spatial dimensions, but got " << node.type(0);
    return failure();
  }
  auto kernel = getKernelShape(node, node.rank(0) - 2);
  if (failed(kernel))
    return failure();
  return getWindow(node, node.in(0), *kernel);
}

//===----------------------------------------------------------------------===//
// MaxPool
//===----------------------------------------------------------------------===//

/// The elements between neighbours of each spatial dimension in the flat index that MaxPool returns.
static SmallVector<Value> getIndexStrides(Node &node, ArrayRef<Size> spatial) {
  SmallVector<Value> strides(spatial.size());
  Size stride = node.b.getIndexAttr(1);
  bool isColumnMajor = node.integer("storage_order") == 1;
  for (size_t n = 0; n < spatial.size(); ++n) {
    size_t dim = isColumnMajor ? n : spatial.size() - 1 - n;
    strides[dim] = node.math.value(stride);
    stride = node.math.mul(stride, spatial[dim]);
  }
  return strides;
}

namespace {

/// Where in the unpadded input an element of a window lies.
struct Position {
  Value flat;     // index in the whole tensor
  Value isInside; // false in the padding
};

/// Computes positions from loop indices (n, c, output..., kernel...).
struct PositionFinder {
  PositionFinder(Node &node, const Window &window);
  Position find(Builder &b) const;

  const Window &window;
  SmallVector<Value> low, sizes, strides;
  Value channels, plane;
};

} // namespace

PositionFinder::PositionFinder(Node &node, const Window &window) : window(window) {
  SmallVector<Size> all = node.sizes(node.in(0)), spatial(all.begin() + 2, all.end());
  Size product = node.b.getIndexAttr(1);
  for (auto [size, before] : llvm::zip(spatial, window.low)) {
    low.push_back(node.math.value(before));
    sizes.push_back(node.math.value(size));
    product = node.math.mul(product, size);
  }
  strides = getIndexStrides(node, spatial);
  channels = node.math.value(all[1]);
  plane = node.math.value(product);
}

Position PositionFinder::find(Builder &b) const {
  auto loop = [&](unsigned i) -> Value { return linalg::IndexOp::create(b, i); };
  Value row = arith::AddIOp::create(b, arith::MulIOp::create(b, loop(0), channels), loop(1));
  Position position{arith::MulIOp::create(b, row, plane), {}};
  for (unsigned i = 0, rank = window.rank(); i < rank; ++i) {
    Value start = arith::MulIOp::create(b, loop(2 + i), arith::ConstantIndexOp::create(b, window.strides[i]));
    Value step = arith::MulIOp::create(b, loop(2 + rank + i), arith::ConstantIndexOp::create(b, window.dilations[i]));
    Value at = arith::SubIOp::create(b, arith::AddIOp::create(b, start, step), low[i]);
    // One unsigned comparison refuses both sides: a negative index is a large one.
    Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, at, sizes[i]);
    position.isInside = position.isInside ? arith::AndIOp::create(b, position.isInside, inside).getResult() : inside;
    position.flat = arith::AddIOp::create(b, position.flat, arith::MulIOp::create(b, at, strides[i]));
  }
  return position;
}

/// The flat index of each window's first greatest element, given the greatest elements.
static Value findIndices(Node &node, Value padded, Value greatest, const Window &window) {
  unsigned rank = window.rank(), loops = 2 + 2 * rank;
  MLIRContext *context = node.b.getContext();
  SmallVector<AffineExpr> exprs = {node.b.getAffineDimExpr(0), node.b.getAffineDimExpr(1)};
  llvm::append_range(exprs, window.positions(node, 2, 2 + rank));
  AffineMap output = AffineMap::getMultiDimIdentityMap(loops, context).getMajorSubMap(2 + rank);
  PositionFinder finder(node, window);
  Type index = node.b.getI64Type();
  return accumulate(
      node, node.sizes(greatest), window.kernel,
      {Operand{padded, AffineMap::get(loops, 0, exprs, context)}, Operand{greatest, output}}, node.constant(-1, index),
      [&](Builder &b, ValueRange v, Value found) -> Value {
        Position position = finder.find(b);
        Value equal = isa<FloatType>(v[0].getType())
                          ? Value(arith::CmpFOp::create(b, arith::CmpFPredicate::UEQ, v[0], v[1]))
                          : arith::CmpIOp::create(b, arith::CmpIPredicate::eq, v[0], v[1]);
        Value zero = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
        Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, found, zero);
        Value take = arith::AndIOp::create(b, arith::AndIOp::create(b, equal, position.isInside), isFirst);
        return arith::SelectOp::create(b, take, arith::IndexCastOp::create(b, index, position.flat), found);
      });
}

static LogicalResult lowerMaxPool(Node &node) {
  auto window = getPoolWindow(node);
  if (failed(window))
    return failure();
  bool isUnsigned = node.isUnsigned(0);
  Value least = getLeast(node, node.element(0), isUnsigned);
  Value greatest = createPool(node, node.in(0), *window, PoolKind::Max);
  if (greatest)
    greatest = convertFloats(node, greatest, node.element(0));
  else
    greatest = foldWindows(node, window->pad(node, node.in(0), least), *window, least,
                           [&](Builder &b, Value x, Value best) { return takeGreater(b, x, best, isUnsigned); });
  node.set(0, greatest);
  if (node.wants(1))
    node.set(1, findIndices(node, window->pad(node, node.in(0), least), greatest, *window));
  return success();
}

//===----------------------------------------------------------------------===//
// AveragePool and LpPool
//===----------------------------------------------------------------------===//

/// How many kernel positions of dimension `i` lie in [from, to) of the padded input for the window that starts at `start`.
static Value countBelow(Builder &b, Value bound, Value start, int64_t dilation, Value kernel) {
  Value room = arith::SubIOp::create(b, bound, start), zero = arith::ConstantIndexOp::create(b, 0);
  Value steps = arith::CeilDivSIOp::create(b, room, arith::ConstantIndexOp::create(b, dilation));
  return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, steps, zero), kernel);
}

/// The number of elements each window averages over, as a tensor over the output's spatial dimensions.
static Value countElements(Node &node, const Window &window, bool includesPadding, Type element) {
  SmallVector<Value> first, last, kernel;
  SmallVector<Size> sizes = node.sizes(node.in(0));
  for (size_t i = 0; i < window.rank(); ++i) {
    Size end = node.math.add(sizes[2 + i], window.low[i]);
    first.push_back(node.math.value(includesPadding ? Size(node.b.getIndexAttr(0)) : window.low[i]));
    last.push_back(node.math.value(includesPadding ? node.math.add(end, window.high[i]) : end));
    kernel.push_back(node.math.value(window.kernel[i]));
  }
  return node.generate(window.output, element, [&](Builder &b, ValueRange at) -> Value {
    Value count = arith::ConstantIndexOp::create(b, 1);
    for (size_t i = 0; i < window.rank(); ++i) {
      Value start = arith::MulIOp::create(b, at[i], arith::ConstantIndexOp::create(b, window.strides[i]));
      Value inside = countBelow(b, last[i], start, window.dilations[i], kernel[i]);
      Value before = countBelow(b, first[i], start, window.dilations[i], kernel[i]);
      count = arith::MulIOp::create(b, count, arith::SubIOp::create(b, inside, before));
    }
    return arith::SIToFPOp::create(b, element, arith::IndexCastOp::create(b, b.getI64Type(), count));
  });
}

static LogicalResult lowerAveragePool(Node &node) {
  auto window = getPoolWindow(node);
  if (failed(window))
    return failure();
  Type element = node.element(0), wide = getAccumulator(element);
  Value sum = createPool(node, node.in(0), *window, PoolKind::Sum);
  if (!sum)
    sum = foldWindows(node, window->pad(node, node.in(0), node.zero(element)), *window, node.zero(wide),
                      [&](Builder &b, Value x, Value total) { return addScalars(b, total, convertFloat(b, x, wide)); });
  Value count = countElements(node, *window, node.integer("count_include_pad"), wide);
  node.set(0, node.elementwiseOver(node.sizes(sum), {sum, count}, element, [&](Builder &b, ValueRange v) {
    return convertFloat(b, arith::DivFOp::create(b, v[0], v[1]), element);
  }));
  return success();
}

/// |x|^p, or its sum's p-th root with `power` = 1 / p.
static Value raise(Builder &b, Value x, double power) {
  if (power == 1.0)
    return x;
  return math::PowFOp::create(b, x, arith::ConstantOp::create(b, b.getFloatAttr(x.getType(), power)));
}

static Value takeRoot(Node &node, Value sum, double p, Type element) {
  return node.elementwiseOver(node.sizes(sum), sum, element, [&](Builder &b, ValueRange v) {
    return convertFloat(b, raise(b, v[0], 1.0 / p), element);
  });
}

static LogicalResult lowerLpPool(Node &node) {
  auto window = getPoolWindow(node);
  double p = static_cast<double>(node.integer("p", 2));
  if (failed(window))
    return failure();
  Type element = node.element(0), wide = getAccumulator(element);
  Value padded = window->pad(node, node.in(0), node.zero(element));
  Value sum = foldWindows(node, padded, *window, node.zero(wide), [&](Builder &b, Value x, Value total) {
    Value power = raise(b, math::AbsFOp::create(b, convertFloat(b, x, wide)), p);
    return addScalars(b, total, power);
  });
  node.set(0, takeRoot(node, sum, p, element));
  return success();
}

//===----------------------------------------------------------------------===//
// Global poolings
//===----------------------------------------------------------------------===//

static FailureOr<SmallVector<int64_t>> getSpatialAxes(Node &node) {
  if (node.rank(0) < 2) {
    node.fail() << "expected a batch and channels, but got " << node.type(0);
    return failure();
  }
  return llvm::to_vector(llvm::seq<int64_t>(2, node.rank(0)));
}

static LogicalResult lowerGlobalMaxPool(Node &node) {
  auto axes = getSpatialAxes(node);
  if (failed(axes))
    return failure();
  node.set(0, node.reduce(node.in(0), *axes, /*keep=*/true, getLeast(node, node.element(0), false),
                          [](Builder &b, Value x, Value best) { return takeGreater(b, x, best, false); }));
  return success();
}

static LogicalResult lowerGlobalAveragePool(Node &node) {
  auto axes = getSpatialAxes(node);
  if (failed(axes))
    return failure();
  Type element = node.element(0), wide = getAccumulator(element);
  Value sum = node.reduce(node.in(0), *axes, /*keep=*/true, node.zero(wide), [&](Builder &b, Value x, Value total) {
    return addScalars(b, total, convertFloat(b, x, wide));
  });
  Size count = node.b.getIndexAttr(1);
  for (Size size : ArrayRef(node.sizes(node.in(0))).drop_front(2))
    count = node.math.mul(count, size);
  Value divisor = arith::SIToFPOp::create(node.b, wide, node.math.scalar(count, node.b.getI64Type()));
  node.set(0, node.elementwiseOver(node.sizes(sum), sum, element, [&](Builder &b, ValueRange v) {
    return convertFloat(b, arith::DivFOp::create(b, v[0], divisor), element);
  }));
  return success();
}

static LogicalResult lowerGlobalLpPool(Node &node) {
  auto axes = getSpatialAxes(node);
  double p = static_cast<double>(node.integer("p", 2));
  if (failed(axes))
    return failure();
  Type element = node.element(0), wide = getAccumulator(element);
  Value sum = node.reduce(node.in(0), *axes, /*keep=*/true, node.zero(wide), [&](Builder &b, Value x, Value total) {
    return addScalars(b, total, raise(b, math::AbsFOp::create(b, convertFloat(b, x, wide)), p));
  });
  node.set(0, takeRoot(node, sum, p, element));
  return success();
}

//===----------------------------------------------------------------------===//
// MaxUnpool
//===----------------------------------------------------------------------===//

/// Zeros of `count` elements with element `indices[i]` set to `values[i]`, all flat; indices are in [0, count).
static Value scatterFlat(Node &node, Value values, Value indices, Size count) {
  Builder &b = node.b;
  Value zeros = node.filled(count, node.zero(cast<RankedTensorType>(values.getType()).getElementType()));
  Value first = arith::ConstantIndexOp::create(b, 0), step = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ForOp::create(
      b, first, node.math.value(node.size(values, 0)), step, zeros,
      [&](OpBuilder &nested, Location loc, Value i, ValueRange state) {
        Builder inner(loc, nested);
        Value at =
            arith::IndexCastOp::create(inner, inner.getIndexType(), tensor::ExtractOp::create(inner, indices, i));
        Value value = tensor::ExtractOp::create(inner, values, i);
        scf::YieldOp::create(inner, tensor::InsertOp::create(inner, value, state[0], at).getResult());
      });
  node.lowerer.setSizes(loop.getResult(0), count);
  return loop.getResult(0);
}

static Size getCount(Node &node, ArrayRef<Size> sizes) {
  Size count = node.b.getIndexAttr(1);
  for (Size size : sizes)
    count = node.math.mul(count, size);
  return count;
}

/// The inverse of MaxPool; a larger output_shape has zeros after.
static LogicalResult lowerMaxUnpool(Node &node) {
  SmallVector<Size> sizes = node.sizes(node.in(0)), inferred(sizes);
  if (sizes.size() < 3)
    return node.fail() << "expected a batch, channels and spatial dimensions, but got " << node.type(0);
  size_t rank = sizes.size() - 2;
  auto kernel = getPerDimension(node, "kernel_shape", rank, 1), strides = getPerDimension(node, "strides", rank, 1);
  auto pads = getPerDimension(node, "pads", 2 * rank, 0);
  if (failed(kernel) || failed(strides) || failed(pads))
    return failure();
  for (size_t i = 0; i < rank; ++i) {
    Size steps = node.math.sub(sizes[2 + i], node.b.getIndexAttr(1));
    Size start = node.math.mul(steps, node.b.getIndexAttr((*strides)[i]));
    inferred[2 + i] = node.math.add(start, node.b.getIndexAttr((*kernel)[i] - (*pads)[i] - (*pads)[rank + i]));
  }
  if (failed(requireShape(node, node.in(1), sizes, "I", "those of X")))
    return failure();
  Size count = getCount(node, sizes), total = getCount(node, inferred);
  checkElements(node, node.in(1), node.b.getIndexAttr(0), total, "expected indices inside the result");
  Value flat = scatterFlat(node, node.reshape(node.in(0), count), node.reshape(node.in(1), count), total);
  Value result = node.reshape(flat, inferred);
  if (node.has(2)) {
    auto wanted = getSizes(node, 2);
    if (failed(wanted))
      return failure();
    if (wanted->size() != sizes.size())
      return node.fail() << "expected output_shape to have " << sizes.size() << " elements, but got " << wanted->size();
    SmallVector<Size> before(sizes.size(), node.b.getIndexAttr(0)), after;
    for (auto [to, from] : llvm::zip(*wanted, inferred))
      after.push_back(node.math.max(node.math.sub(to, from), node.b.getIndexAttr(0)));
    result = surround(node, result, before, after, node.zero(node.element(0)));
  }
  node.set(0, result);
  return success();
}

void addPoolLowerings(LoweringTable &table) {
  table["onnx.MaxPool"] = lowerMaxPool;
  table["onnx.AveragePool"] = lowerAveragePool;
  table["onnx.LpPool"] = lowerLpPool;
  table["onnx.GlobalMaxPool"] = lowerGlobalMaxPool;
  table["onnx.GlobalAveragePool"] = lowerGlobalAveragePool;
  table["onnx.GlobalLpPool"] = lowerGlobalLpPool;
  table["onnx.MaxUnpool"] = lowerMaxUnpool;
}

} // namespace hone::lowering
