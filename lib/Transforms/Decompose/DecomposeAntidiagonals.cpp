//===- DecomposeAntidiagonals.cpp - decomposition of select_antidiagonals ---------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"
#include "SelectionParts.h"

#include "hone/Transforms/DecomposedParts.h"

#include <limits>

using namespace mlir;
using namespace hone;

namespace {

/// Loops of the scores `[B, Hk, query groups, key groups, G]`, of a sum over an antidiagonal, and of lists `[B, Hk, lists, blocks]`.
enum : int64_t { Batch, Head, Queries, Keys, Group, Place, Element };

class AntidiagonalBuilder {
public:
  AntidiagonalBuilder(LocBuilder &builder, SelectAntidiagonalsOp op)
      : builder(builder), op(op), queries(asIndex(builder, getSize(builder, op.getQuery(), 2))),
        keys(asIndex(builder, getSize(builder, op.getKeys(), 2))), lists(getResultSizes(builder, op)) {}

  Value build() { return buildLists(buildImportance(sumSoftmaxes(builder, buildScores()))); }

private:
  Value buildScores();
  Value buildImportance(Value shares);
  Value buildLists(Value importance);

  Value divideUp(Value count, int64_t by) {
    return arith::CeilDivSIOp::create(builder, count, arith::ConstantIndexOp::create(builder, by));
  }
  SmallVector<Operand> getKeyBegin() {
    return op.getKeyBegin() ? SmallVector<Operand>{{op.getKeyBegin(), {Batch}}} : SmallVector<Operand>();
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

Value AntidiagonalBuilder::buildLists(Value importance) {
  BlockRanking ranking(builder, lists, op.getBegin(), op.getEnd());
  Value infinity = constantF32(builder, std::numeric_limits<float>::infinity());
  Value few = arith::ConstantIndexOp::create(builder, SelectAntidiagonalsOp::kFewQueries);
  Value areFew = arith::CmpIOp::create(builder, arith::CmpIPredicate::sle, queries, few);
  Value order = buildMap(builder, lists, builder.getF32Type(), {{importance, loopRange(0, 4)}},
                         [&](LocBuilder &b, ValueRange args) { return choose(b, areFew, infinity, args[0]); });
  float share = op.getShare().convertToFloat();
  if (share == 1) // all of it are all blocks
    return ranking.buildLists(importance, order, {}, lists.back());
  SmallVector<int64_t> list = loopRange(0, 3);
  BlockRanking::Goal goal;
  goal.importance = buildMap(builder, ArrayRef(lists).drop_back(), builder.getF32Type(),
                             {{ranking.sumAll(importance), list}, {ranking.sumOthers(importance), list}},
                             [&](LocBuilder &b, ValueRange args) -> Value {
                               Value wanted = arith::MulFOp::create(b, args[0], constantF32(b, share));
                               return arith::SubFOp::create(b, wanted, args[1]);
                             });
  return ranking.buildLists(importance, order, goal, lists.back());
}

Value hone::decomposeSelectAntidiagonals(LocBuilder &builder, SelectAntidiagonalsOp op) {
  return AntidiagonalBuilder(builder, op).build();
}
