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

static Value overlapsKept(Selection &s, Builder &b, Value batch, Value candidate, Value kept) {
  Box box = readBox(s, b, batch, candidate);
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  return loopNest(s.node, s.count, no, [&](Builder &inner, ValueRange at, ValueRange so) -> SmallVector<Value> {
    Value isKept = tensor::ExtractOp::create(inner, kept, at[0]);
    Value here = both(inner, isKept, overlaps(s, inner, box, readBox(s, inner, batch, at[0])));
    return {arith::OrIOp::create(inner, so[0], here)};
  })[0];
}

/// Considers one more box of a class. Carried: the list, its length, the used and the kept boxes, how many are kept.
static SmallVector<Value> selectOne(Selection &s, Builder &b, Value batch, Value label, ValueRange carried) {
  Value list = carried[0], used = carried[2], kept = carried[3], count = s.node.math.value(s.count);
  Value one = arith::ConstantIndexOp::create(b, 1), yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value best = findBest(s, b, batch, label, used);
  Value found = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, best, count);
  Value index = arith::MinSIOp::create(b, best, arith::SubIOp::create(b, count, one));
  Value room = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, carried[4], s.node.math.value(s.most));
  Value free = arith::XOrIOp::create(b, overlapsKept(s, b, batch, index, kept), yes);
  Value take = both(b, both(b, found, room), free);
  Value row[] = {batch, label, index};
  for (auto [i, value] : llvm::enumerate(row)) {
    Value element = arith::IndexCastOp::create(b, b.getI64Type(), value);
    list = tensor::InsertOp::create(b, element, list, ValueRange{carried[1], arith::ConstantIndexOp::create(b, i)});
  }
  Value step = arith::IndexCastUIOp::create(b, b.getIndexType(), take);
  Value keeps = arith::OrIOp::create(b, tensor::ExtractOp::create(b, kept, index), take);
  return {list, arith::AddIOp::create(b, carried[1], step), tensor::InsertOp::create(b, yes, used, index),
          tensor::InsertOp::create(b, keeps, kept, index), arith::AddIOp::create(b, carried[4], step)};
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
        Value nothing = node.zero(inner.getI1Type());
        Value start[] = {carried[0], carried[1], node.filled(s.count, nothing), node.filled(s.count, nothing), zero};
        auto end = loopNest(node, s.count, start, [&](Builder &deep, ValueRange, ValueRange state) {
          return selectOne(s, deep, at[0], at[1], state);
        });
        return {end[0], end[1]};
      });
  node.lowerer.setSizes(lists[0], {rows, three});
  math.markNonNegative(lists[1]);
  Size none = math.constant(0), one = math.constant(1);
  node.set(0, node.slice(lists[0], {none, none}, {math.fromScalar(lists[1]), three}, {one, one}));
  return success();
}

void addNonMaxSuppressionLowerings(LoweringTable &table) { table["onnx.NonMaxSuppression"] = lowerNonMaxSuppression; }

} // namespace hone::lowering
