// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stable sorting of rows, and TopK. A row's order is sorted bottom-up: in each pass an element of one of two sorted
// runs finds its place by counting, by bisection, the elements of the other run that go before it. In short rows, as routers
// choose experts from, every element counts all that go before it, which threads of any device do side by side.

#include "Formula.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// Builds the loops that sort one row of `data`, a matrix. `order` is a tensor<2x?xindex>: the order before a pass and after.
struct RowSorter {
  Node &node;
  Value data, length;
  bool largest, isUnsigned;

  Value index(Builder &b, int64_t value) const { return arith::ConstantIndexOp::create(b, value); }
  Value add(Builder &b, Value l, Value r) const { return arith::AddIOp::create(b, l, r); }
  Value sub(Builder &b, Value l, Value r) const { return arith::SubIOp::create(b, l, r); }
  Value isLess(Builder &b, Value l, Value r) const { return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, l, r); }

  Value read(Builder &b, Value row, Value position) const {
    Value element = tensor::ExtractOp::create(b, data, ValueRange{row, position});
    return convertScalar(b, element, element.getType(), getComputeType(element.getType()));
  }

  /// Whether value `l` goes before value `r`; NaN counts as the largest.
  Value goesBefore(Builder &b, Value l, Value r) const {
    if (isa<FloatType>(l.getType())) {
      Number left{&b, l}, right{&b, r};
      Number above = largest ? left : right, below = largest ? right : left;
      Value onlyNaN = arith::AndIOp::create(b, above != above, below == below);
      return arith::OrIOp::create(b, above > below, onlyNaN);
    }
    using arith::CmpIPredicate;
    CmpIPredicate predicate = largest ? (isUnsigned ? CmpIPredicate::ugt : CmpIPredicate::sgt)
                                      : (isUnsigned ? CmpIPredicate::ult : CmpIPredicate::slt);
    return arith::CmpIOp::create(b, predicate, l, r);
  }

  Value countBefore(Builder &b, Value row, Value order, Value parity, Value begin, Value end, Value value,
                    Value isLeft) const;
  Value placeElement(Builder &b, Value row, Value order, Value parity, Value width, Value at) const;
  Value merge(Builder &b, Value row, Value order, Value parity, Value width) const;
  std::pair<Value, Value> sort(Builder &b, Value row, Value order) const;
};

} // namespace

/// How many elements of the run [begin, end) go before `value`: those of the right run that are strictly before an element
/// of the left one, those of the left run that are not after one of the right.
Value RowSorter::countBefore(Builder &b, Value row, Value order, Value parity, Value begin, Value end, Value value,
                             Value isLeft) const {
  Type indexType = b.getIndexType();
  auto search = scf::WhileOp::create(
      b, TypeRange{indexType, indexType}, ValueRange{begin, end},
      [&](OpBuilder &nested, Location loc, ValueRange bounds) {
        Builder inner(loc, nested);
        scf::ConditionOp::create(inner, isLess(inner, bounds[0], bounds[1]), bounds);
      },
      [&](OpBuilder &nested, Location loc, ValueRange bounds) {
        Builder inner(loc, nested);
        Value middle = arith::DivUIOp::create(inner, add(inner, bounds[0], bounds[1]), index(inner, 2));
        Value position = tensor::ExtractOp::create(inner, order, ValueRange{parity, middle});
        Value other = read(inner, row, position);
        Value strictly = goesBefore(inner, other, value);
        Value truth = arith::ConstantOp::create(inner, inner.getBoolAttr(true));
        Value notAfter = arith::XOrIOp::create(inner, goesBefore(inner, value, other), truth);
        Value isBefore = arith::SelectOp::create(inner, isLeft, strictly, notAfter);
        Value low = arith::SelectOp::create(inner, isBefore, add(inner, middle, index(inner, 1)), bounds[0]);
        Value high = arith::SelectOp::create(inner, isBefore, bounds[1], middle);
        scf::YieldOp::create(inner, ValueRange{low, high});
      });
  return sub(b, search.getResult(0), begin);
}

/// Writes element `at` of one run to its place among both.
Value RowSorter::placeElement(Builder &b, Value row, Value order, Value parity, Value width, Value at) const {
  Value both = arith::MulIOp::create(b, width, index(b, 2));
  Value begin = arith::MulIOp::create(b, arith::DivUIOp::create(b, at, both), both);
  Value middle = arith::MinUIOp::create(b, add(b, begin, width), length);
  Value end = arith::MinUIOp::create(b, add(b, begin, both), length);
  Value isLeft = isLess(b, at, middle);
  Value otherBegin = arith::SelectOp::create(b, isLeft, middle, begin);
  Value otherEnd = arith::SelectOp::create(b, isLeft, end, middle);
  Value position = tensor::ExtractOp::create(b, order, ValueRange{parity, at});
  Value before = countBefore(b, row, order, parity, otherBegin, otherEnd, read(b, row, position), isLeft);
  Value own = arith::SelectOp::create(b, isLeft, at, sub(b, add(b, begin, at), middle));
  Value to = sub(b, index(b, 1), parity);
  return tensor::InsertOp::create(b, position, order, ValueRange{to, add(b, own, before)});
}

/// One pass: runs of `width` in order[parity] become runs of twice that in the other.
Value RowSorter::merge(Builder &b, Value row, Value order, Value parity, Value width) const {
  auto loop = scf::ForOp::create(b, index(b, 0), length, index(b, 1), order,
                                 [&](OpBuilder &nested, Location loc, Value at, ValueRange state) {
                                   Builder inner(loc, nested);
                                   scf::YieldOp::create(inner, placeElement(inner, row, state[0], parity, width, at));
                                 });
  return loop.getResult(0);
}

/// The sorted order and which of its two rows holds it.
std::pair<Value, Value> RowSorter::sort(Builder &b, Value row, Value order) const {
  auto identity = scf::ForOp::create(
      b, index(b, 0), length, index(b, 1), order, [&](OpBuilder &nested, Location loc, Value at, ValueRange state) {
        Builder inner(loc, nested);
        Value zero = index(inner, 0);
        Value written = tensor::InsertOp::create(inner, at, state[0], ValueRange{zero, at});
        scf::YieldOp::create(inner, written);
      });
  Type indexType = b.getIndexType();
  auto passes = scf::WhileOp::create(
      b, TypeRange{indexType, indexType, order.getType()}, ValueRange{index(b, 1), index(b, 0), identity.getResult(0)},
      [&](OpBuilder &nested, Location loc, ValueRange state) {
        Builder inner(loc, nested);
        scf::ConditionOp::create(inner, isLess(inner, state[0], length), state);
      },
      [&](OpBuilder &nested, Location loc, ValueRange state) {
        Builder inner(loc, nested);
        Value merged = merge(inner, row, state[2], state[1], state[0]);
        Value doubled = arith::MulIOp::create(inner, state[0], index(inner, 2));
        scf::YieldOp::create(inner, ValueRange{doubled, sub(inner, index(inner, 1), state[1]), merged});
      });
  return {passes.getResult(2), passes.getResult(1)};
}

namespace {

/// The first `count` of each sorted row: values and positions.
struct Selection {
  Value values, positions;
};

} // namespace

static Selection selectFirst(Node &node, const RowSorter &sorter, Size rows, Size count) {
  Builder &b = node.b;
  Type element = cast<RankedTensorType>(sorter.data.getType()).getElementType();
  Size length = node.math.fromScalar(sorter.length);
  Value order = node.empty({b.getIndexAttr(2), length}, b.getIndexType());
  Value values = node.empty({rows, count}, element), positions = node.empty({rows, count}, b.getI64Type());
  Value zero = sorter.index(b, 0), one = sorter.index(b, 1), most = node.math.value(count);
  auto loop = scf::ForOp::create(
      b, zero, node.math.value(rows), one, ValueRange{values, positions, order},
      [&](OpBuilder &nested, Location loc, Value row, ValueRange state) {
        Builder inner(loc, nested);
        auto [sorted, parity] = sorter.sort(inner, row, state[2]);
        Value source = sorted, half = parity;
        auto copy = scf::ForOp::create(
            inner, zero, most, one, state.take_front(2), [&](OpBuilder &deeper, Location, Value at, ValueRange taken) {
              Builder innermost(loc, deeper);
              Value position = tensor::ExtractOp::create(innermost, source, ValueRange{half, at});
              Value value = tensor::ExtractOp::create(innermost, sorter.data, ValueRange{row, position});
              Value wide = arith::IndexCastOp::create(innermost, innermost.getI64Type(), position);
              Value first = tensor::InsertOp::create(innermost, value, taken[0], ValueRange{row, at});
              Value second = tensor::InsertOp::create(innermost, wide, taken[1], ValueRange{row, at});
              scf::YieldOp::create(innermost, ValueRange{first, second});
            });
        scf::YieldOp::create(inner, ValueRange{copy.getResult(0), copy.getResult(1), source});
      });
  node.lowerer.setSizes(loop.getResult(0), {rows, count});
  node.lowerer.setSizes(loop.getResult(1), {rows, count});
  return {loop.getResult(0), loop.getResult(1)};
}

/// Rows of so many elements are sorted by counting: comparing all pairs of 256 is less than sorting them takes, and has no order.
static constexpr int64_t kMostCounted = 256;

/// A sum of i64 over the last of three loops; `maps` are those of the inputs.
static Value buildCount(Node &node, ValueRange inputs, ArrayRef<AffineMap> maps, ArrayRef<Size> sizes,
                        llvm::function_ref<Value(Builder &, ValueRange)> body) {
  using utils::IteratorType;
  Builder &b = node.b;
  Value init = node.filled(sizes, node.zero(b.getI64Type()));
  SmallVector<AffineMap> all(maps);
  all.push_back(AffineMap::get(3, 0, {b.getAffineDimExpr(0), b.getAffineDimExpr(1)}, b.getContext()));
  SmallVector<IteratorType> iterators{IteratorType::parallel, IteratorType::parallel, IteratorType::reduction};
  auto generic = linalg::GenericOp::create(b, init.getType(), inputs, init, all, iterators,
                                           [&](OpBuilder &nested, Location loc, ValueRange arguments) {
                                             Builder inner(loc, nested);
                                             IndexMath::RegionScope scope(node.math);
                                             Value term = body(inner, arguments.drop_back());
                                             Value sum = arith::AddIOp::create(inner, arguments.back(), term);
                                             linalg::YieldOp::create(inner, sum);
                                           });
  node.lowerer.setSizes(generic.getResult(0), sizes);
  return generic.getResult(0);
}

/// The same as selectFirst: the place of an element is the number of those that go before it.
static Selection selectByCounting(Node &node, const RowSorter &sorter, Size rows, Size count) {
  Builder &b = node.b;
  Type element = cast<RankedTensorType>(sorter.data.getType()).getElementType();
  auto at = [&](ArrayRef<int64_t> dims) {
    SmallVector<AffineExpr> exprs;
    for (int64_t dim : dims)
      exprs.push_back(b.getAffineDimExpr(dim));
    return AffineMap::get(3, 0, exprs, b.getContext());
  };
  auto index = [](Builder &b, int64_t dim) -> Value {
    return arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, dim));
  };
  Value places = buildCount(node, {sorter.data, sorter.data}, {at({0, 1}), at({0, 2})},
                            {rows, node.math.fromScalar(sorter.length)}, [&](Builder &b, ValueRange v) -> Value {
                              Value own = convertScalar(b, v[0], element, getComputeType(element));
                              Value other = convertScalar(b, v[1], element, getComputeType(element));
                              Value isEarlier =
                                  arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index(b, 2), index(b, 1));
                              Value truth = arith::ConstantOp::create(b, b.getBoolAttr(true));
                              Value notAfter = arith::XOrIOp::create(b, sorter.goesBefore(b, own, other), truth);
                              Value isTie = arith::AndIOp::create(b, notAfter, isEarlier);
                              Value isBefore = arith::OrIOp::create(b, sorter.goesBefore(b, other, own), isTie);
                              return arith::ExtUIOp::create(b, b.getI64Type(), isBefore);
                            });
  Value positions = buildCount(node, places, at({0, 2}), {rows, count}, [&](Builder &b, ValueRange v) -> Value {
    Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, v[0], index(b, 1));
    Value zero = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
    return arith::SelectOp::create(b, isHere, index(b, 2), zero);
  });
  Value values = node.elementwiseOver({rows, count}, positions, element, [&](Builder &b, ValueRange v) -> Value {
    Value row = linalg::IndexOp::create(b, 0), position = arith::IndexCastOp::create(b, b.getIndexType(), v[0]);
    return tensor::ExtractOp::create(b, sorter.data, ValueRange{row, position});
  });
  return {values, positions};
}

/// The order of dimensions that puts `axis` last, and the one that puts it back.
static std::pair<SmallVector<int64_t>, SmallVector<int64_t>> moveLast(int64_t axis, int64_t rank) {
  SmallVector<int64_t> forth, back(rank);
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis)
      forth.push_back(d);
  forth.push_back(axis);
  for (auto [to, from] : llvm::enumerate(forth))
    back[from] = to;
  return {forth, back};
}

static LogicalResult lowerTopK(Node &node) {
  auto axis = node.axis(node.integer("axis", -1), node.rank(0));
  if (failed(axis))
    return failure();
  auto given = node.indices(1);
  if (failed(given))
    return failure();
  if (given->size() != 1)
    return node.fail() << "expected K to be one number, but got " << node.type(1);
  Builder &b = node.b;
  auto [forth, back] = moveLast(*axis, node.rank(0));
  Value moved = node.transpose(node.in(0), forth);
  SmallVector<Size> sizes = node.sizes(moved);
  Size length = sizes.back(), rows = b.getIndexAttr(1), count = given->front();
  for (Size size : ArrayRef<Size>(sizes).drop_back())
    rows = node.math.mul(rows, size);
  Value isInRange =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ule, node.math.value(count), node.math.value(length));
  node.check(isInRange, "K is larger than the axis, or negative");
  RowSorter sorter{node, node.reshape(moved, {rows, length}), node.math.value(length), node.integer("largest", 1) != 0,
                   node.isUnsigned(0)};
  std::optional<int64_t> known = IndexMath::getConstant(length);
  Selection selection = known && *known <= kMostCounted ? selectByCounting(node, sorter, rows, count)
                                                        : selectFirst(node, sorter, rows, count);
  sizes.back() = count;
  node.set(0, node.transpose(node.reshape(selection.values, sizes), back));
  node.set(1, node.transpose(node.reshape(selection.positions, sizes), back));
  return success();
}

void addSortLowerings(LoweringTable &table) { table["onnx.TopK"] = lowerTopK; }

} // namespace hone::lowering
