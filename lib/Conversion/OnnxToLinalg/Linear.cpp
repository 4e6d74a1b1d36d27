// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of matrices: MatMul, Gemm and onnxruntime's FusedMatMul.

#include "Loops.h"

using namespace mlir;

namespace hone::lowering {

/// `tensor` times a constant; itself if that is 1.
static Value scale(Node &node, Value tensor, double factor) {
  if (factor == 1.0)
    return tensor;
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  Value constant = node.constant(factor, element);
  return node.elementwise(tensor, element, [&](Builder &b, ValueRange x) { return multiplyScalars(b, x[0], constant); });
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
    node.fail() << "expected operands of at least one dimension, but got ranks " << left.size() << " and " << right.size();
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

void addLinearLowerings(LoweringTable &table) {
  table["onnx.MatMul"] = lowerMatMul;
  table["onnx.Gemm"] = lowerGemm;
  table["onnx.com.microsoft.FusedMatMul"] = lowerFusedMatMul;
}

} // namespace hone::lowering
