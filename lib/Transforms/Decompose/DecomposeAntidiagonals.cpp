//===- DecomposeAntidiagonals.cpp - decomposition of select_antidiagonals ---------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block is selected where those that go before it and those that are seen anyway have less than the share: all blocks are compared with
// all.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"
#include "SelectionParts.h"

#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace hone;

Value hone::toBlocks(LocBuilder &builder, Value blocks, const Sizes &sizes) {
  Value init = tensor::EmptyOp::create(builder, sizes, builder.getI64Type()), none = constantF32(builder, -1);
  SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(4));
  SmallVector<utils::IteratorType> loops(4, utils::IteratorType::parallel);
  auto toInteger = [&](OpBuilder &nested, Location loc, ValueRange args) {
    Value block = arith::MaximumFOp::create(nested, loc, args[0], none);
    linalg::YieldOp::create(nested, loc, arith::FPToSIOp::create(nested, loc, nested.getI64Type(), block).getResult());
  };
  return linalg::GenericOp::create(builder, init.getType(), blocks, init, maps, loops, toInteger).getResult(0);
}

namespace {

/// Loops of the scores `[B, Hk, query groups, key groups, G]`, of a sum over an antidiagonal, and of lists `[B, Hk, lists, blocks]`.
enum : int64_t { Batch, Head, Queries, Keys, Group, Place, Element };

class AntidiagonalBuilder {
public:
  AntidiagonalBuilder(LocBuilder &builder, SelectAntidiagonalsOp op)
      : builder(builder), op(op), queries(asIndex(builder, getSize(builder, op.getQuery(), 2))),
        keys(asIndex(builder, getSize(builder, op.getKeys(), 2))), lists(getResultSizes(builder, op)) {}

  Value build() { return buildLists(buildImportance(buildShares(buildScores()))); }

private:
  Value buildScores();
  Value buildShares(Value scores);
  Value buildImportance(Value shares);
  Value buildSums(Value importance, bool ofSeen);
  Value buildBefore(Value importance, bool areCounted);
  Value buildLists(Value importance);

  Value divideUp(Value count, int64_t by) {
    return arith::CeilDivSIOp::create(builder, count, arith::ConstantIndexOp::create(builder, by));
  }
  SmallVector<Operand> getInterval() {
    SmallVector<Operand> operands;
    for (Value bounds : {op.getBegin(), op.getEnd()}) {
      bool isRepeated = cast<RankedTensorType>(bounds.getType()).getDimSize(0) == 1;
      operands.push_back({bounds, {isRepeated ? Repeated : Batch, Queries}});
    }
    return operands;
  }
  SmallVector<Operand> getKeyBegin() {
    return op.getKeyBegin() ? SmallVector<Operand>{{op.getKeyBegin(), {Batch}}} : SmallVector<Operand>();
  }
  static Value isCandidate(LocBuilder &b, ValueRange interval, Value block) {
    IndexBuilder index{b};
    return index.both(index.isLess(index.sub(index.of(interval[0]), index.constant(1)), block),
                      index.isLess(block, index.of(interval[1])));
  }

  LocBuilder &builder;
  SelectAntidiagonalsOp op;
  Value queries, keys; // how many there are
  Sizes lists, sizes;  // of the result, of scores
};

} // namespace

/// Sums over antidiagonals, scaled, and minus infinity where the keys of a group come after all queries of the other.
Value AntidiagonalBuilder::buildScores() {
  int64_t stride = op.getStride();
  OpFoldResult heads = getSize(builder, op.getKeys(), 1), length = getSize(builder, op.getQuery(), 3);
  Value group =
      arith::DivUIOp::create(builder, asIndex(builder, getSize(builder, op.getQuery(), 1)), asIndex(builder, heads));
  sizes = {lists[0], heads, divideUp(queries, stride), divideUp(keys, stride), group};
  float scale = op.getScale().convertToFloat() / static_cast<float>(stride);
  SmallVector<Operand> loops{ofSize(builder, builder.getIndexAttr(stride), Place), ofSize(builder, length, Element)};
  loops.append(getKeyBegin());
  auto isAfter = [&](LocBuilder &b, ValueRange keyBegin, Value key) {
    IndexBuilder index{b};
    return op.getKeyBegin() ? index.isLess(index.sub(index.of(keyBegin.back()), index.constant(1)), key)
                            : arith::ConstantOp::create(b, b.getBoolAttr(true)).getResult();
  };
  Value sums = buildReduce(builder, Reduction::Sum, sizes, loops, [&](LocBuilder &b, ValueRange args) -> Value {
    IndexBuilder index{b};
    Value zero = index.constant(0), place = index.loop(Place);
    Value query = index.sub(index.add(index.times(index.loop(Queries), stride), index.constant(stride - 1)), place);
    Value key = index.add(index.times(index.loop(Keys), stride), place);
    Value exists = index.both(index.isLess(query, queries), index.isLess(key, keys));
    exists = index.both(exists, isAfter(b, args, key));
    Value head = index.add(arith::MulIOp::create(b, index.loop(Head), group), index.loop(Group));
    Value x =
        extractF32(b, op.getQuery(), {index.loop(Batch), head, choose(b, exists, query, zero), index.loop(Element)});
    Value y = extractF32(b, op.getKeys(),
                         {index.loop(Batch), index.loop(Head), choose(b, exists, key, zero), index.loop(Element)});
    return choose(b, exists, arith::MulFOp::create(b, x, y), constantF32(b, 0));
  });
  loops = {{sums, loopRange(0, 5)}};
  loops.append(getKeyBegin());
  return buildMap(builder, sizes, builder.getF32Type(), loops, [&](LocBuilder &b, ValueRange args) {
    IndexBuilder index{b};
    Value last = index.add(index.times(index.loop(Keys), stride), index.constant(stride - 1));
    Value own = index.add(index.sub(keys, queries),
                          index.add(index.times(index.loop(Queries), stride), index.constant(stride)));
    Value isVisible = index.both(index.isLess(index.times(index.loop(Keys), stride), own), isAfter(b, args, last));
    Value score = arith::MulFOp::create(b, args[0], constantF32(b, scale));
    return choose(b, isVisible, score, constantF32(b, -std::numeric_limits<float>::infinity()));
  });
}

/// The sum of the softmaxes of the query heads that share a KV head, `[B, Hk, query groups, key groups]`.
Value AntidiagonalBuilder::buildShares(Value scores) {
  Sizes rows{sizes[Batch], sizes[Head], sizes[Queries], sizes[Group]};
  SmallVector<int64_t> row{Batch, Head, Queries, Group}, all = loopRange(0, 5), swapped{0, 1, 2, 4, 3};
  auto first = [](LocBuilder &, ValueRange args) { return args[0]; };
  Value maxima = buildReduce(builder, Reduction::Max, rows, {{scores, swapped}}, first);
  Value exps =
      buildMap(builder, sizes, builder.getF32Type(), {{scores, all}, {maxima, row}},
               [](LocBuilder &b, ValueRange args) -> Value {
                 Value none = constantF32(b, -std::numeric_limits<float>::infinity());
                 Value exp = math::ExpOp::create(b, arith::SubFOp::create(b, args[0], args[1]));
                 return choose(b, compare(b, arith::CmpFPredicate::OEQ, args[0], none), constantF32(b, 0), exp);
               });
  Value sums = buildReduce(builder, Reduction::Sum, rows, {{exps, swapped}}, first);
  return buildReduce(builder, Reduction::Sum, ArrayRef(sizes).drop_back(), {{exps, all}, {sums, row}},
                     [](LocBuilder &b, ValueRange args) -> Value { // a row that sees nothing has a sum of 0
                       Value zero = constantF32(b, 0), share = arith::DivFOp::create(b, args[0], args[1]);
                       return choose(b, compare(b, arith::CmpFPredicate::OEQ, args[0], zero), zero, share);
                     });
}

/// Of blocks, from that of groups.
Value AntidiagonalBuilder::buildImportance(Value shares) {
  int64_t perList = op.getQueries() / op.getStride(), perBlock = op.getSize() / op.getStride();
  SmallVector<Operand> loops{ofSize(builder, builder.getIndexAttr(perList), Group),
                             ofSize(builder, builder.getIndexAttr(perBlock), Place)};
  Value groups = asIndex(builder, sizes[Queries]), keyGroups = asIndex(builder, sizes[Keys]);
  return buildReduce(builder, Reduction::Sum, lists, loops, [&](LocBuilder &b, ValueRange) -> Value {
    IndexBuilder index{b};
    Value query = index.add(index.times(index.loop(Queries), perList), index.loop(Group));
    Value key = index.add(index.times(index.loop(Keys), perBlock), index.loop(Place));
    Value exists = index.both(index.isLess(query, groups), index.isLess(key, keyGroups)), zero = index.constant(0);
    Value x = extractF32(
        b, shares, {index.loop(Batch), index.loop(Head), choose(b, exists, query, zero), choose(b, exists, key, zero)});
    return choose(b, exists, x, constantF32(b, 0));
  });
}

/// Of each list `[B, Hk, lists]`: of the blocks that are no candidates, or of all.
Value AntidiagonalBuilder::buildSums(Value importance, bool ofSeen) {
  SmallVector<Operand> operands{{importance, loopRange(0, 4)}};
  operands.append(getInterval());
  return buildReduce(builder, Reduction::Sum, ArrayRef(lists).drop_back(), operands,
                     [&](LocBuilder &b, ValueRange args) -> Value {
                       Value isLeftOut = isCandidate(b, args.drop_front(), IndexBuilder{b}.loop(Keys));
                       return ofSeen ? choose(b, isLeftOut, constantF32(b, 0), args[0]) : args[0];
                     });
}

/// Of the candidates that go before each block: how many they are, or their importance.
Value AntidiagonalBuilder::buildBefore(Value importance, bool areCounted) {
  SmallVector<Operand> operands{{importance, {0, 1, 2, 3}}, {importance, {0, 1, 2, 4}}};
  operands.append(getInterval());
  return buildReduce(builder, Reduction::Sum, lists, operands, [&](LocBuilder &b, ValueRange args) -> Value {
    IndexBuilder index{b};
    Value isGreater = compare(b, arith::CmpFPredicate::OGT, args[1], args[0]);
    Value isEqual = compare(b, arith::CmpFPredicate::OEQ, args[1], args[0]);
    Value isFirst = index.both(isEqual, index.isLess(index.loop(4), index.loop(3)));
    Value goesBefore = arith::OrIOp::create(b, isGreater, isFirst);
    goesBefore = index.both(goesBefore, isCandidate(b, args.drop_front(2), index.loop(4)));
    return choose(b, goesBefore, areCounted ? constantF32(b, 1) : args[1], constantF32(b, 0));
  });
}

/// Which block is at each place. Numbers of blocks are exact as f32 below 2^24.
Value AntidiagonalBuilder::buildLists(Value importance) {
  Value seen = buildSums(importance, true), total = buildSums(importance, false), none = constantF32(builder, -1);
  Value few = arith::ConstantIndexOp::create(builder, SelectAntidiagonalsOp::kFewQueries);
  Value areFew = arith::CmpIOp::create(builder, arith::CmpIPredicate::sle, queries, few);
  float share = op.getShare().convertToFloat();
  SmallVector<int64_t> list = loopRange(0, 3), all = loopRange(0, 4);
  SmallVector<Operand> operands{
      {buildBefore(importance, true), all}, {buildBefore(importance, false), all}, {seen, list}, {total, list}};
  operands.append(getInterval());
  Value places = buildMap(builder, lists, builder.getF32Type(), operands, [&](LocBuilder &b, ValueRange args) -> Value {
    IndexBuilder index{b};
    ValueRange interval = args.drop_front(4);
    Value wanted = arith::MulFOp::create(
        b, args[3],
        constantF32(b, share == 1 ? std::numeric_limits<float>::infinity() : share)); // all of it are all blocks
    Value isNeeded = compare(b, arith::CmpFPredicate::OLT, arith::AddFOp::create(b, args[2], args[1]), wanted);
    Value place = choose(b, areFew, asF32(b, index.sub(index.loop(Keys), index.of(interval[0]))), args[0]);
    Value isListed = index.both(isCandidate(b, interval, index.loop(Keys)), arith::OrIOp::create(b, areFew, isNeeded));
    return choose(b, isListed, place, none);
  });
  Value blocks =
      buildReduce(builder, Reduction::Max, lists, {{places, {0, 1, 2, 4}}}, [&](LocBuilder &b, ValueRange args) {
        IndexBuilder index{b};
        Value isThere = compare(b, arith::CmpFPredicate::OEQ, args[0], asF32(b, index.loop(3)));
        return choose(b, isThere, asF32(b, index.loop(4)), none);
      });
  return toBlocks(builder, blocks, lists);
}

Value hone::decomposeSelectAntidiagonals(LocBuilder &builder, SelectAntidiagonalsOp op) {
  return AntidiagonalBuilder(builder, op).build();
}
