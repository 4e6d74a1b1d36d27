// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of matrices, MatMul, Gemm and onnxruntime's FusedMatMul, and Det by elimination with partial pivoting.

#include "Formula.h"
#include "Loops.h"

using namespace mlir;

namespace hone::lowering {

/// `tensor` times a constant; itself if that is 1.
static Value scale(Node &node, Value tensor, double factor) {
  if (factor == 1.0)
    return tensor;
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  Value constant = node.constant(factor, element);
  return node.elementwise(tensor, element,
                          [&](Builder &b, ValueRange x) { return multiplyScalars(b, x[0], constant); });
}

/// The tensor with its last two dimensions exchanged.
static Value transposeMatrices(Node &node, Value tensor) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(tensor.getType()).getRank()));
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return node.transpose(tensor, order);
}

FailureOr<Value> multiplyAnyRank(Node &node, Value lhs, Value rhs) {
  SmallVector<Size> left = node.sizes(lhs), right = node.sizes(rhs);
  if (left.empty() || right.empty()) {
    node.fail() << "expected operands of at least one dimension, but got ranks " << left.size() << " and "
                << right.size();
    return failure();
  }
  Size one = node.b.getIndexAttr(1);
  bool isRow = left.size() == 1, isColumn = right.size() == 1;
  if (isRow)
    lhs = node.reshape(lhs, {one, left[0]});
  if (isColumn)
    rhs = node.reshape(rhs, {right[0], one});
  auto product = multiplyMatrices(node, lhs, rhs);
  if (failed(product) || !(isRow || isColumn))
    return product;
  SmallVector<Size> sizes = node.sizes(*product);
  if (isColumn)
    sizes.pop_back();
  if (isRow)
    sizes.erase(sizes.end() - (isColumn ? 1 : 2));
  return node.reshape(*product, sizes);
}

static LogicalResult lowerMatMul(Node &node) {
  auto product = multiplyAnyRank(node, node.in(0), node.in(1));
  if (failed(product))
    return failure();
  node.set(0, *product);
  return success();
}

/// alpha * A' * B' + beta * C, where ' transposes on demand and C is broadcast.
static LogicalResult lowerGemm(Node &node) {
  if (node.rank(0) != 2 || node.rank(1) != 2)
    return node.fail() << "expected A and B to be matrices, but got " << node.type(0) << " and " << node.type(1);
  bool transposed = node.integer("transB");
  double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
  Value lhs = node.integer("transA") ? node.transpose(node.in(0), {1, 0}) : node.in(0);
  Value addend = node.in(2);
  bool isBias = addend && transposed && alpha == 1 && beta == 1 && node.rank(2) == 1 &&
                node.math.equal(node.size(addend, 0), node.size(node.in(1), 0));
  auto product = transposed ? applyLinear(node, lhs, node.in(1), isBias ? addend : Value())
                            : multiplyMatrices(node, lhs, node.in(1));
  if (failed(product))
    return failure();
  Value result = scale(node, *product, alpha);
  if (addend && !isBias) {
    addend = scale(node, addend, beta);
    result = node.elementwiseOver(node.sizes(result), {result, addend}, node.element(0),
                                  [](Builder &b, ValueRange x) { return addScalars(b, x[0], x[1]); });
  }
  node.set(0, result);
  return success();
}

/// com.microsoft FusedMatMul: MatMul of transposed operands, times alpha. A transposed batch has its rows first:
/// [M, batch..., K] stands for [batch..., M, K].
static LogicalResult lowerFusedMatMul(Node &node) {
  Value operands[] = {node.in(0), node.in(1)};
  for (int i = 0; i < 2; ++i) {
    StringRef name = i == 0 ? "A" : "B";
    int64_t rank = node.rank(i);
    if (node.integer(("transBatch" + name).str()) && rank > 2) {
      auto order = llvm::to_vector(llvm::seq<int64_t>(1, rank - 1));
      order.append({0, rank - 1});
      operands[i] = node.transpose(operands[i], order);
    }
    if (node.integer(("trans" + name).str()) && rank > 1)
      operands[i] = transposeMatrices(node, operands[i]);
  }
  auto product = multiplyAnyRank(node, operands[0], operands[1]);
  if (failed(product))
    return failure();
  node.set(0, scale(node, *product, node.real("alpha", 1)));
  return success();
}

//===----------------------------------------------------------------------===//
// Det
//===----------------------------------------------------------------------===//

namespace {

/// A loop from `first` to `last` over carried values, built at the node's insertion point.
template <typename Body>
SmallVector<Value> loop(Node &node, Value first, Value last, ArrayRef<Value> carried, Body body) {
  Builder &b = node.b;
  auto loop = scf::ForOp::create(b, first, last, arith::ConstantIndexOp::create(b, 1), carried);
  OpBuilder::InsertionGuard guard(b);
  IndexMath::RegionScope scope(node.math);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(b, body(loop.getInductionVar(), loop.getRegionIterArgs()));
  return SmallVector<Value>(loop.getResults());
}

} // namespace

static Value isSame(Builder &b, Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lhs, rhs);
}

static Number read(Builder &b, Value matrix, Value row, Value column) {
  return {&b, tensor::ExtractOp::create(b, matrix, ValueRange{row, column})};
}

/// The row from `k` on whose element in column `k` has the greatest magnitude.
static Value findPivot(Node &node, Value matrix, Value k, Value size, Type type) {
  SmallVector<Value> none = {k, node.constant(-1, type)};
  return loop(node, k, size, none, [&](Value row, ValueRange best) {
    Number magnitude = abs(read(node.b, matrix, row, k)), greatest{&node.b, best[1]};
    Value isGreater = magnitude > greatest;
    return SmallVector<Value>{arith::SelectOp::create(node.b, isGreater, row, best[0]), max(magnitude, greatest).value};
  })[0];
}

/// One step: rows `k` and `pivot` change places, and what is below the pivot becomes 0.
static Value eliminate(Node &node, Value matrix, ArrayRef<Size> sizes, Value k, Value pivot, Type type) {
  node.lowerer.setSizes(matrix, sizes);
  Value swapped = node.generate(sizes, type, [&](Builder &b, ValueRange at) {
    Value row = arith::SelectOp::create(b, isSame(b, at[0], pivot), k, at[0]);
    row = arith::SelectOp::create(b, isSame(b, at[0], k), pivot, row);
    return read(b, matrix, row, at[1]).value;
  });
  return node.generate(sizes, type, [&](Builder &b, ValueRange at) {
    Number x = read(b, swapped, at[0], at[1]), head = read(b, swapped, k, k);
    Number cleared = x - read(b, swapped, at[0], k) / head * read(b, swapped, k, at[1]);
    Value isBelow = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, at[0], k);
    Value changes = arith::AndIOp::create(b, isBelow, head != 0.0);
    return select(changes, cleared, x).value;
  });
}

static LogicalResult lowerDet(Node &node) {
  SmallVector<Size> sizes = node.sizes(node.in(0));
  if (sizes.size() < 2)
    return node.fail() << "expected square matrices, but got " << node.type(0);
  Size side = sizes.back(), one = node.b.getIndexAttr(1), none = node.b.getIndexAttr(0), count = one;
  if (failed(requireEqual(node, side, sizes[sizes.size() - 2], "the sides of a square matrix")))
    return failure();
  SmallVector<Size> batch(sizes.begin(), sizes.end() - 2), square = {side, side};
  for (Size size : batch)
    count = node.math.mul(count, size);
  Builder &b = node.b;
  Type element = node.element(0), compute = getAccumulator(element);
  Value matrices = node.reshape(convertFloats(node, node.in(0), compute), {count, side, side});
  Value zero = arith::ConstantIndexOp::create(b, 0), last = node.math.value(side);
  Value all = loop(node, zero, node.math.value(count), {node.empty(count, compute)}, [&](Value i, ValueRange results) {
    Value matrix = node.reshape(node.slice(matrices, {i, none, none}, {one, side, side}, {one, one, one}), square);
    SmallVector<Value> initial = {matrix, node.constant(1, compute)};
    Value product = loop(node, zero, last, initial, [&](Value k, ValueRange state) {
      Value pivot = findPivot(node, state[0], k, last, compute);
      Number head = read(b, state[0], pivot, k), total{&b, state[1]};
      Number next = total * select(isSame(b, pivot, k), head, -head);
      return SmallVector<Value>{eliminate(node, state[0], square, k, pivot, compute), next.value};
    })[1];
    return SmallVector<Value>{tensor::InsertOp::create(b, product, results[0], i)};
  })[0];
  node.lowerer.setSizes(all, count);
  node.set(0, node.reshape(convertFloats(node, all, element), batch));
  return success();
}

void addLinearLowerings(LoweringTable &table) {
  table["onnx.MatMul"] = lowerMatMul;
  table["onnx.Gemm"] = lowerGemm;
  table["onnx.com.microsoft.FusedMatMul"] = lowerFusedMatMul;
  table["onnx.Det"] = lowerDet;
}

} // namespace hone::lowering
