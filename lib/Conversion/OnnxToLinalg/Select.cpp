// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that keep some elements, so that the size of their result depends on values.

#include "Indices.h"

using namespace mlir;

namespace hone::lowering {

/// Whether a scalar is other than zero.
static Value isNonZero(Builder &b, Value scalar) {
  Type type = scalar.getType();
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  if (isa<FloatType>(type))
    return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, scalar, zero);
  return type.isInteger(1) ? scalar : arith::CmpIOp::create(b, arith::CmpIPredicate::ne, scalar, zero).getResult();
}

static Value addIf(Builder &b, Value count, Value condition) {
  return arith::AddIOp::create(b, count, arith::IndexCastUIOp::create(b, b.getIndexType(), condition));
}

/// How many elements are other than zero.
static Size countNonZero(Node &node, Value tensor) {
  SmallVector<int64_t> axes =
      llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(tensor.getType()).getRank()));
  Value count = node.reduce(tensor, axes, false, node.zero(node.b.getI64Type()),
                            [](Builder &b, Value element, Value sum) -> Value {
                              Value one = arith::ExtUIOp::create(b, b.getI64Type(), isNonZero(b, element));
                              return arith::AddIOp::create(b, sum, one);
                            });
  Value scalar = tensor::ExtractOp::create(node.b, count, ValueRange());
  node.math.markNonNegative(scalar);
  return node.math.fromScalar(scalar);
}

/// The indices of the elements other than zero, in row-major order: [rank, count], as i64.
static Value listNonZero(Node &node, Value tensor) {
  Builder &b = node.b;
  SmallVector<Size> sizes = node.sizes(tensor);
  Size rank = node.math.constant(sizes.size()), count = countNonZero(node, tensor);
  // One column more than there are elements to list: each place is written until an element takes it for good.
  Size columns = node.math.add(count, node.math.constant(1));
  Value initial[] = {node.empty({rank, columns}, b.getI64Type()), arith::ConstantIndexOp::create(b, 0)};
  auto lists =
      loopNest(node, sizes, initial, [&](Builder &inner, ValueRange at, ValueRange carried) -> SmallVector<Value> {
        Value list = carried[0], next = carried[1];
        for (auto [dim, index] : llvm::enumerate(at)) {
          Value place[] = {arith::ConstantIndexOp::create(inner, dim), next};
          Value element = arith::IndexCastOp::create(inner, inner.getI64Type(), index);
          list = tensor::InsertOp::create(inner, element, list, place);
        }
        return {list, addIf(inner, next, isNonZero(inner, tensor::ExtractOp::create(inner, tensor, at)))};
      });
  node.lowerer.setSizes(lists[0], {rank, columns});
  Size zero = node.math.constant(0), one = node.math.constant(1);
  return node.slice(lists[0], {zero, zero}, {rank, count}, {one, one});
}

/// A scalar has no dimension to give an index in: its list is [0, 1] or [0, 0].
static LogicalResult lowerNonZero(Node &node) {
  if (node.rank(0) == 0)
    node.set(0, node.empty({node.math.constant(0), countNonZero(node, node.in(0))}, node.b.getI64Type()));
  else
    node.set(0, listNonZero(node, node.in(0)));
  return success();
}

static LogicalResult lowerCompress(Node &node) {
  Value data = node.in(0), condition = node.in(1);
  if (node.rank(1) != 1)
    return node.fail() << "expected input 1 to be a vector, but got " << node.type(1);
  int64_t axis = 0;
  if (node.hasAttribute("axis")) {
    auto given = node.axis(node.integer("axis"), node.rank(0));
    if (failed(given))
      return failure();
    axis = *given;
  } else {
    data = node.reshape(data, getProduct(node, node.sizes(data)));
  }
  SmallVector<Size> sizes = node.sizes(data);
  Size zero = node.math.constant(0), one = node.math.constant(1);
  Size length = node.math.min(node.size(condition, 0), sizes[axis]); // more conditions than elements select nothing
  Value list = listNonZero(node, node.slice(condition, zero, length, one));
  sizes[axis] = node.size(list, 1);
  node.set(0, node.generate(sizes, node.element(0), [&](Builder &b, ValueRange at) -> Value {
    SmallVector<Value> from(at);
    Value place[] = {arith::ConstantIndexOp::create(b, 0), at[axis]};
    from[axis] = arith::IndexCastOp::create(b, b.getIndexType(), tensor::ExtractOp::create(b, list, place));
    return tensor::ExtractOp::create(b, data, from);
  }));
  return success();
}

void addSelectLowerings(LoweringTable &table) {
  table["onnx.Compress"] = lowerCompress;
  table["onnx.NonZero"] = lowerNonZero;
}

} // namespace hone::lowering
