// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NonMaxSuppression: for each class of each batch, boxes in order of score, without those that overlap a better one.

#include "Indices.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// The sides of a box, low before high.
struct Box {
  Value left, right, bottom, top;
};

/// What does not change while boxes are selected.
struct Selection {
  Node &node;
  Value boxes, scores, overlapLimit, scoreLimit;
  Size count, most;
};

} // namespace

static Value sub(Builder &b, Value lhs, Value rhs) { return arith::SubFOp::create(b, lhs, rhs); }
static Value mul(Builder &b, Value lhs, Value rhs) { return arith::MulFOp::create(b, lhs, rhs); }
static Value both(Builder &b, Value lhs, Value rhs) { return arith::AndIOp::create(b, lhs, rhs); }
static Value greater(Builder &b, Value lhs, Value rhs) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, lhs, rhs);
}

static Box readBox(Selection &s, Builder &b, Value batch, Value index) {
  auto read = [&](int64_t i) -> Value {
    return tensor::ExtractOp::create(b, s.boxes, ValueRange{batch, index, arith::ConstantIndexOp::create(b, i)});
  };
  auto low = [&](Value x, Value y) -> Value { return arith::MinimumFOp::create(b, x, y); };
  auto high = [&](Value x, Value y) -> Value { return arith::MaximumFOp::create(b, x, y); };
  Value v[] = {read(0), read(1), read(2), read(3)};
  if (s.node.integer("center_point_box") == 0)
    return {low(v[1], v[3]), high(v[1], v[3]), low(v[0], v[2]), high(v[0], v[2])};
  Value half = arith::ConstantOp::create(b, b.getF32FloatAttr(0.5f));
  Value width = mul(b, v[2], half), height = mul(b, v[3], half);
  return {sub(b, v[0], width), arith::AddFOp::create(b, v[0], width), sub(b, v[1], height),
          arith::AddFOp::create(b, v[1], height)};
}

/// Whether the intersection of two boxes over their union is above the limit; boxes without area overlap nothing.
static Value overlaps(Selection &s, Builder &b, const Box &x, const Box &y) {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Value width = sub(b, arith::MinimumFOp::create(b, x.right, y.right), arith::MaximumFOp::create(b, x.left, y.left));
  Value height = sub(b, arith::MinimumFOp::create(b, x.top, y.top), arith::MaximumFOp::create(b, x.bottom, y.bottom));
  auto area = [&](const Box &box) { return mul(b, sub(b, box.right, box.left), sub(b, box.top, box.bottom)); };
  Value shared = mul(b, width, height), first = area(x), second = area(y);
  Value all = sub(b, arith::AddFOp::create(b, first, second), shared);
  Value meets = both(b, greater(b, width, zero), greater(b, height, zero));
  Value solid = both(b, both(b, greater(b, first, zero), greater(b, second, zero)), greater(b, all, zero));
  return both(b, both(b, meets, solid), greater(b, arith::DivFOp::create(b, shared, all), s.overlapLimit));
}

/// The unused box of the highest score above the limit, the first of equal ones; `count` if there is none.
static Value findBest(Selection &s, Builder &b, Value batch, Value label, Value used) {
  Value none = s.node.math.value(s.count);
  Value initial[] = {arith::ConstantOp::create(b, b.getF32FloatAttr(0)), none};
  return loopNest(s.node, s.count, initial, [&](Builder &inner, ValueRange at, ValueRange best) -> SmallVector<Value> {
    Value score = tensor::ExtractOp::create(inner, s.scores, ValueRange{batch, label, at[0]});
    Value no = arith::ConstantOp::create(inner, inner.getBoolAttr(false));
    Value fresh =
        arith::CmpIOp::create(inner, arith::CmpIPredicate::eq, tensor::ExtractOp::create(inner, used, at[0]), no);
    Value first = arith::CmpIOp::create(inner, arith::CmpIPredicate::eq, best[1], none);
    Value better = both(inner, fresh, arith::OrIOp::create(inner, first, greater(inner, score, best[0])));
    if (s.scoreLimit)
      better = both(inner, better, greater(inner, score, s.scoreLimit));
    return {arith::SelectOp::create(inner, better, score, best[0]),
            arith::SelectOp::create(inner, better, at[0], best[1])};
  })[1];
}

/// Whether the candidate overlaps one of the boxes in rows [first, end) of the list.
static Value overlapsKept(Selection &s, Builder &b, Value batch, Value candidate, Value list, Value first, Value end) {
  Box box = readBox(s, b, batch, candidate);
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false)), one = arith::ConstantIndexOp::create(b, 1);
  auto loop =
      scf::ForOp::create(b, first, end, one, no, [&](OpBuilder &nested, Location loc, Value row, ValueRange so) {
        Builder inner(loc, nested);
        Value kept = tensor::ExtractOp::create(inner, list, ValueRange{row, arith::ConstantIndexOp::create(inner, 2)});
        Value index = arith::IndexCastOp::create(inner, inner.getIndexType(), kept);
        Value here = overlaps(s, inner, box, readBox(s, inner, batch, index));
        scf::YieldOp::create(inner, ValueRange{arith::OrIOp::create(inner, so[0], here)});
      });
  return loop.getResult(0);
}

/// Considers the best box that is left of a class whose boxes begin in row `first` of the list. Carried: the list, its length, the used
/// boxes, and whether there was one left.
static SmallVector<Value> selectOne(Selection &s, Builder &b, Value batch, Value label, Value first,
                                    ValueRange carried) {
  Value list = carried[0], length = carried[1], used = carried[2], count = s.node.math.value(s.count);
  Value one = arith::ConstantIndexOp::create(b, 1), yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value best = findBest(s, b, batch, label, used);
  Value found = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, best, count);
  Value index = arith::MinSIOp::create(b, best, arith::SubIOp::create(b, count, one));
  Value free = arith::XOrIOp::create(b, overlapsKept(s, b, batch, index, list, first, length), yes);
  Value row[] = {batch, label, index};
  for (auto [i, value] : llvm::enumerate(row)) {
    Value element = arith::IndexCastOp::create(b, b.getI64Type(), value);
    list = tensor::InsertOp::create(b, element, list, ValueRange{length, arith::ConstantIndexOp::create(b, i)});
  }
  Value step = arith::IndexCastUIOp::create(b, b.getIndexType(), both(b, found, free));
  return {list, arith::AddIOp::create(b, length, step), tensor::InsertOp::create(b, yes, used, index), found};
}

/// The list and its length with the boxes of a class: until it has the most, or none is left above the limit.
static SmallVector<Value> selectClass(Selection &s, Builder &b, Value batch, Value label, ValueRange carried) {
  Value first = carried[1], used = s.node.filled(s.count, s.node.zero(b.getI1Type()));
  Value full = arith::AddIOp::create(b, first, s.node.math.value(s.most));
  Value start[] = {carried[0], first, used, arith::ConstantOp::create(b, b.getBoolAttr(true))};
  auto loop = scf::WhileOp::create(
      b, ValueRange(start).getTypes(), start,
      [&](OpBuilder &nested, Location loc, ValueRange state) {
        Builder inner(loc, nested);
        Value room = arith::CmpIOp::create(inner, arith::CmpIPredicate::slt, state[1], full);
        scf::ConditionOp::create(inner, both(inner, room, state[3]), state);
      },
      [&](OpBuilder &nested, Location loc, ValueRange state) {
        Builder inner(loc, nested);
        IndexMath::RegionScope scope(s.node.math);
        OpBuilder::InsertionGuard guard(s.node.b);
        s.node.b.setInsertionPointToEnd(inner.getInsertionBlock());
        scf::YieldOp::create(inner, selectOne(s, inner, batch, label, first, state));
      });
  return {loop.getResult(0), loop.getResult(1)};
}

static FailureOr<Selection> getSelection(Node &node) {
  if (node.rank(0) != 3 || node.rank(1) != 3)
    return node.fail() << "expected boxes and scores of rank 3, but got " << node.type(0) << " and " << node.type(1);
  IndexMath &math = node.math;
  Value boxes = node.in(0), scores = node.in(1);
  Size count = node.size(boxes, 1);
  node.check(compare(node, arith::CmpIPredicate::eq, node.size(boxes, 2), math.constant(4)),
             "expected boxes of 4 numbers");
  node.check(compare(node, arith::CmpIPredicate::eq, node.size(scores, 2), count), "expected as many scores as boxes");
  node.check(compare(node, arith::CmpIPredicate::eq, node.size(scores, 0), node.size(boxes, 0)),
             "expected as many batches of scores as of boxes");
  FailureOr<Size> most = node.has(2) ? getScalarIndex(node, 2) : FailureOr<Size>(math.constant(0));
  FailureOr<Value> overlapLimit = node.has(3) ? getScalar(node, 3) : FailureOr<Value>(node.zero(node.b.getF32Type()));
  FailureOr<Value> scoreLimit = node.has(4) ? getScalar(node, 4) : FailureOr<Value>(Value());
  if (failed(most) || failed(overlapLimit) || failed(scoreLimit))
    return failure();
  return Selection{
      node, boxes, scores, *overlapLimit, *scoreLimit, count, math.min(math.max(*most, math.constant(0)), count)};
}

static LogicalResult lowerNonMaxSuppression(Node &node) {
  auto found = getSelection(node);
  if (failed(found))
    return failure();
  Selection s = *found;
  Builder &b = node.b;
  IndexMath &math = node.math;
  SmallVector<Size> outer{node.size(s.scores, 0), node.size(s.scores, 1)};
  // One row more than can be selected: a row is written until a box takes it for good.
  Size rows = math.add(math.mul(math.mul(outer[0], outer[1]), s.most), math.constant(1)), three = math.constant(3);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value initial[] = {node.empty({rows, three}, b.getI64Type()), zero};
  auto lists =
      loopNest(node, outer, initial, [&](Builder &inner, ValueRange at, ValueRange carried) -> SmallVector<Value> {
        return selectClass(s, inner, at[0], at[1], carried);
      });
  node.lowerer.setSizes(lists[0], {rows, three});
  math.markNonNegative(lists[1]);
  Size none = math.constant(0), one = math.constant(1);
  node.set(0, node.slice(lists[0], {none, none}, {math.fromScalar(lists[1]), three}, {one, one}));
  return success();
}

void addNonMaxSuppressionLowerings(LoweringTable &table) { table["onnx.NonMaxSuppression"] = lowerNonMaxSuppression; }

} // namespace hone::lowering
