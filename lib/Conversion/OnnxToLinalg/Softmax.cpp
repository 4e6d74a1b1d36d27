// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Softmax, LogSoftmax and Hardmax: along one axis since opset 13, over all axes from one on before.

#include "Axes.h"
#include "Formula.h"
#include "Normalize.h"

using namespace mlir;

namespace hone::lowering {

/// Lowers along the axis; before opset 13 of a matrix that has all dimensions from the axis on as its rows.
static LogicalResult lowerAlongAxis(Node &node, llvm::function_ref<Value(Value tensor, int64_t axis)> along) {
  bool flattens = node.opset() != 0 && node.opset() < 13;
  int64_t rank = node.rank(0), given = node.integer("axis", flattens ? 1 : -1);
  if (rank == 0)
    return node.fail() << "expected a tensor of at least one dimension, but got " << node.type(0);
  if (flattens && given == rank) { // rows of one element
    given = rank - 1;
    flattens = false;
  }
  auto axis = node.axis(given, rank);
  if (failed(axis))
    return failure();
  Value x = node.in(0);
  if (!flattens || *axis == rank - 1) { // its rows are those of the matrix too
    node.set(0, along(x, *axis));
    return success();
  }
  SmallVector<Size> sizes = node.sizes(x), matrix(2, node.b.getIndexAttr(1));
  for (auto [d, size] : llvm::enumerate(sizes))
    matrix[static_cast<int64_t>(d) >= *axis] = node.math.mul(matrix[static_cast<int64_t>(d) >= *axis], size);
  node.set(0, node.reshape(along(node.reshape(x, matrix), 1), sizes));
  return success();
}

/// x less the largest of its row, in the type that is computed in.
static Value shiftRows(Node &node, Value x, int64_t axis) {
  Value wide = widen(node, x);
  Type compute = cast<RankedTensorType>(wide.getType()).getElementType();
  Value least = node.constant(-std::numeric_limits<double>::infinity(), compute);
  Value largest = node.reduce(wide, axis, /*keep=*/true, least, [](Builder &b, Value element, Value accumulator) {
    return arith::MaximumFOp::create(b, element, accumulator);
  });
  return combineWith(node, wide, largest, [](Number l, Number r) { return l - r; });
}

static Value sumRows(Node &node, Value x, int64_t axis) { return sumOver(node, x, axis, /*keep=*/true); }

Value computeSoftmax(Node &node, Value x, int64_t axis) {
  Value powers = mapFloats(node, shiftRows(node, x, axis), [](Number n) { return exp(n); });
  Value result = combineWith(node, powers, sumRows(node, powers, axis), [](Number l, Number r) { return l / r; });
  return narrow(node, result, cast<RankedTensorType>(x.getType()).getElementType());
}

static LogicalResult lowerSoftmax(Node &node) {
  return lowerAlongAxis(node, [&](Value x, int64_t axis) { return computeSoftmax(node, x, axis); });
}

static LogicalResult lowerLogSoftmax(Node &node) {
  return lowerAlongAxis(node, [&](Value x, int64_t axis) {
    Value shifted = shiftRows(node, x, axis);
    Value powers = mapFloats(node, shifted, [](Number n) { return exp(n); });
    Value logs = mapFloats(node, sumRows(node, powers, axis), [](Number n) { return log(n); });
    return narrow(node, combineWith(node, shifted, logs, [](Number l, Number r) { return l - r; }), node.element(0));
  });
}

/// One at the first largest element of each row, else zero.
static LogicalResult lowerHardmax(Node &node) {
  return lowerAlongAxis(node, [&](Value x, int64_t axis) {
    Value at = findExtreme(node, x, axis, /*largest=*/true, /*last=*/false, /*isUnsigned=*/false);
    SmallVector<Size> sizes = node.sizes(x), rows = sizes;
    rows[axis] = node.b.getIndexAttr(1);
    Type element = node.element(0);
    return node.elementwiseOver(sizes, node.reshape(at, rows), element, [&](Builder &b, ValueRange position) -> Value {
      Value own = arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, axis));
      Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own, position[0]);
      Value one = arith::ConstantOp::create(b, b.getFloatAttr(element, 1)),
            zero = arith::ConstantOp::create(b, b.getZeroAttr(element));
      return arith::SelectOp::create(b, isHere, one, zero);
    });
  });
}

void addSoftmaxLowerings(LoweringTable &table) {
  table["onnx.Hardmax"] = lowerHardmax;
  table["onnx.LogSoftmax"] = lowerLogSoftmax;
  table["onnx.Softmax"] = lowerSoftmax;
}

} // namespace hone::lowering
