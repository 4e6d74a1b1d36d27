// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Unique: every row is compared with every other, which is quadratic, in place of a sort that generated code has no
// other use for.

#include "Indices.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// What Unique knows of the rows of a matrix, as vectors of i64.
struct Groups {
  /// Per row: the first row equal to it, and the place of its group among the unique rows.
  Value first, place;
  /// How many groups there are.
  Size count;
};

} // namespace

/// The rows that Unique compares: slices along the axis, or single elements; as a matrix.
static Value getRows(Node &node, std::optional<int64_t> axis) {
  Value tensor = node.in(0);
  SmallVector<Size> sizes = node.sizes(tensor);
  if (!axis)
    return node.reshape(tensor, {getProduct(node, sizes), node.math.constant(1)});
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, sizes.size()));
  order.erase(order.begin() + *axis);
  order.insert(order.begin(), *axis);
  Value moved = node.transpose(tensor, order);
  return node.reshape(moved, {sizes[*axis], getProduct(node, ArrayRef(node.sizes(moved)).drop_front())});
}

static Value isLess(Node &node, Builder &b, Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, lhs, rhs);
  auto predicate = node.isUnsigned(0) ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  return arith::CmpIOp::create(b, predicate, lhs, rhs);
}

/// -1, 0 or 1 as row `i` is before, equal to or after row `j`, column by column.
static Value compareRows(Node &node, Builder &b, Value rows, Value i, Value j) {
  Type type = b.getI64Type();
  Value undecided = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
  return loopNest(node, node.size(rows, 1), undecided,
                  [&](Builder &inner, ValueRange at, ValueRange carried) -> SmallVector<Value> {
                    Value left = tensor::ExtractOp::create(inner, rows, ValueRange{i, at[0]});
                    Value right = tensor::ExtractOp::create(inner, rows, ValueRange{j, at[0]});
                    Value below = arith::ExtUIOp::create(inner, type, isLess(node, inner, left, right));
                    Value above = arith::ExtUIOp::create(inner, type, isLess(node, inner, right, left));
                    Value open = arith::CmpIOp::create(inner, arith::CmpIPredicate::eq, carried[0], undecided);
                    return {
                        arith::SelectOp::create(inner, open, arith::SubIOp::create(inner, above, below), carried[0])};
                  })[0];
}

/// `vector` with `add` added to element `at` where `condition` holds.
static Value countAt(Builder &b, Value vector, Value at, Value condition) {
  Value one = arith::ExtUIOp::create(b, b.getI64Type(), condition);
  Value sum = arith::AddIOp::create(b, tensor::ExtractOp::create(b, vector, at), one);
  return tensor::InsertOp::create(b, sum, vector, at);
}

static Value asIndex(Builder &b, Value value) { return arith::IndexCastOp::create(b, b.getIndexType(), value); }
static Value asElement(Builder &b, Value index) { return arith::IndexCastOp::create(b, b.getI64Type(), index); }

static Value findFirstEqual(Node &node, Value rows) {
  Size count = node.size(rows, 0);
  Value initial = node.filled(count, node.math.scalar(count, node.b.getI64Type()));
  return loopNest(
      node, {count, count}, initial, [&](Builder &b, ValueRange at, ValueRange carried) -> SmallVector<Value> {
        Value order = compareRows(node, b, rows, at[0], at[1]);
        Value equal = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, order, node.zero(b.getI64Type()));
        Value known = tensor::ExtractOp::create(b, carried[0], at[0]);
        Value better = arith::MinSIOp::create(b, known, asElement(b, at[1]));
        return {tensor::InsertOp::create(b, arith::SelectOp::create(b, equal, better, known), carried[0], at[0])};
      })[0];
}

static Value isFirst(Builder &b, Value first, Value row) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, asIndex(b, tensor::ExtractOp::create(b, first, row)), row);
}

/// Numbers the groups by value, or by where they first occur.
static Groups groupRows(Node &node, Value rows, bool sorted) {
  Builder &b = node.b;
  Size count = node.size(rows, 0);
  Value first = findFirstEqual(node, rows), none = node.zero(b.getI64Type());
  Value place = loopNest(node, {count, count}, node.filled(count, none),
                         [&](Builder &inner, ValueRange at, ValueRange carried) -> SmallVector<Value> {
                           Value before =
                               sorted ? Value(arith::CmpIOp::create(inner, arith::CmpIPredicate::slt,
                                                                    compareRows(node, inner, rows, at[1], at[0]), none))
                                      : arith::CmpIOp::create(inner, arith::CmpIPredicate::slt, at[1], at[0]);
                           Value counts = arith::AndIOp::create(inner, before, isFirst(inner, first, at[1]));
                           return {countAt(inner, carried[0], at[0], counts)};
                         })[0];
  Value groups = loopNest(node, count, Value(arith::ConstantIndexOp::create(b, 0)),
                          [&](Builder &inner, ValueRange at, ValueRange carried) -> SmallVector<Value> {
                            Value one =
                                arith::IndexCastUIOp::create(inner, inner.getIndexType(), isFirst(inner, first, at[0]));
                            return {arith::AddIOp::create(inner, carried[0], one)};
                          })[0];
  node.math.markNonNegative(groups);
  return {first, place, node.math.fromScalar(groups)};
}

/// The slices of the input at `indices` along the axis, or its elements.
static Value takeRows(Node &node, Value indices, Size count, std::optional<int64_t> axis) {
  Value tensor = axis ? node.in(0) : node.reshape(node.in(0), getProduct(node, node.sizes(node.in(0))));
  SmallVector<Size> sizes = node.sizes(tensor);
  int64_t dim = axis.value_or(0);
  sizes[dim] = count;
  return node.generate(sizes, node.element(0), [&](Builder &b, ValueRange at) -> Value {
    SmallVector<Value> from(at);
    from[dim] = asIndex(b, tensor::ExtractOp::create(b, indices, at[dim]));
    return tensor::ExtractOp::create(b, tensor, from);
  });
}

static LogicalResult lowerUnique(Node &node) {
  std::optional<int64_t> axis;
  if (node.hasAttribute("axis")) {
    auto given = node.axis(node.integer("axis"), node.rank(0));
    if (failed(given))
      return failure();
    axis = *given;
  }
  Value rows = getRows(node, axis);
  Groups groups = groupRows(node, rows, node.integer("sorted", 1) != 0);
  Type type = node.b.getI64Type();
  Size count = node.size(rows, 0);
  Value initial[] = {node.empty(groups.count, type), node.empty(count, type),
                     node.filled(groups.count, node.zero(type))};
  auto lists = loopNest(node, count, initial, [&](Builder &b, ValueRange at, ValueRange carried) -> SmallVector<Value> {
    Value first = tensor::ExtractOp::create(b, groups.first, at[0]);
    Value place = tensor::ExtractOp::create(b, groups.place, asIndex(b, first)), group = asIndex(b, place);
    Value always = arith::ConstantOp::create(b, b.getBoolAttr(true));
    return {tensor::InsertOp::create(b, first, carried[0], group),
            tensor::InsertOp::create(b, place, carried[1], at[0]), countAt(b, carried[2], group, always)};
  });
  SmallVector<Size> lengths{groups.count, count, groups.count};
  for (auto [list, length] : llvm::zip(lists, lengths))
    node.lowerer.setSizes(list, length);
  node.set(0, takeRows(node, lists[0], groups.count, axis));
  for (auto [i, list] : llvm::enumerate(lists))
    node.set(1 + i, list);
  return success();
}

void addUniqueLowerings(LoweringTable &table) { table["onnx.Unique"] = lowerUnique; }

} // namespace hone::lowering
