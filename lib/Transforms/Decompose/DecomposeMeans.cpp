// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The decomposition of select_means.

#include "SelectionParts.h"

#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace hone;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Loops of scores `[B, Hk, lists, blocks, G]`.
enum : int64_t { Batch, Head, List, Block, Group };

/// Blocks of vectors: their means `[B, heads, blocks, D]`, and how similar those of each are, `[B, heads, blocks]`.
struct PooledBlocks {
  Value means, similarities;
};

class MeansBuilder {
public:
  MeansBuilder(LocBuilder &builder, SelectMeansOp op)
      : builder(builder), op(op), queries(asIndex(builder, getSize(builder, op.getQuery(), 2))),
        keys(asIndex(builder, getSize(builder, op.getKeys(), 2))), sizes(getResultSizes(builder, op)) {}

  Value build();

private:
  Value centreKeys();
  PooledBlocks pool(Value vectors, Value keyBegin, int64_t size, OpFoldResult blocks);
  Value buildScores(const PooledBlocks &lists, const PooledBlocks &blocks);
  Value buildOrder(const PooledBlocks &lists, const PooledBlocks &blocks, Value importance);
  Value buildGoal(Value values, int64_t threshold, const BlockRanking &ranking);

  /// Whether block `block` of keys has one that list `list` sees; keyBegin is that of the sequence, or null.
  Value isVisible(LocBuilder &b, Value list, Value block, Value keyBegin);
  SmallVector<Operand> getKeyBegin() {
    return op.getKeyBegin() ? SmallVector<Operand>{{op.getKeyBegin(), {Batch}}} : SmallVector<Operand>();
  }
  /// The threshold of a KV head.
  Value extractThreshold(LocBuilder &b, int64_t number) {
    IndexBuilder index{b};
    bool isRepeated = op.getThresholds().getType().getDimSize(0) == 1;
    return extractF32(b, op.getThresholds(),
                      {isRepeated ? index.constant(0) : index.loop(Head), index.constant(number)});
  }

  LocBuilder &builder;
  SelectMeansOp op;
  Value queries, keys; // how many there are
  Sizes sizes;         // of the result
};

} // namespace

/// Keys without their mean, 0 before key_begin.
Value MeansBuilder::centreKeys() {
  Sizes all = tensor::getMixedSizes(builder, builder.getLoc(), op.getKeys());
  auto isThere = [](LocBuilder &b, ValueRange args, int64_t loop) {
    IndexBuilder index{b};
    return index.isLess(index.sub(index.of(args.back()), index.constant(1)), index.loop(loop));
  };
  SmallVector<Operand> operands{{op.getKeys(), {0, 1, 3, 2}}};
  operands.append(getKeyBegin());
  Value sums = buildReduce(
      builder, Reduction::Sum, {all[0], all[1], all[3]}, operands, [&](LocBuilder &b, ValueRange args) -> Value {
        return op.getKeyBegin() ? choose(b, isThere(b, args, 3), args[0], constantF32(b, 0)) : args[0];
      });
  operands = {{op.getKeys(), loopRange(0, 4)}, {sums, {0, 1, 3}}};
  operands.append(getKeyBegin());
  return buildMap(builder, all, builder.getF32Type(), operands, [&](LocBuilder &b, ValueRange args) -> Value {
    IndexBuilder index{b};
    Value first = op.getKeyBegin() ? index.larger(index.of(args.back()), index.constant(0)) : index.constant(0);
    Value count = index.larger(index.sub(keys, first), index.constant(1));
    Value centred = arith::SubFOp::create(b, args[0], arith::DivFOp::create(b, args[1], asF32(b, count)));
    return op.getKeyBegin() ? choose(b, isThere(b, args, 2), centred, constantF32(b, 0)) : centred;
  });
}

/// Of `vectors` `[B, heads, positions, D]` in blocks of `size`, without those before keyBegin.
PooledBlocks MeansBuilder::pool(Value vectors, Value keyBegin, int64_t size, OpFoldResult blocks) {
  enum : int64_t { Element = 3, Place = 4 };
  Sizes all = tensor::getMixedSizes(builder, builder.getLoc(), vectors), rows{all[0], all[1], all[2]};
  Value count = asIndex(builder, all[2]);
  Value norms =
      buildReduce(builder, Reduction::Sum, rows, {{vectors, loopRange(0, 4)}},
                  [](LocBuilder &b, ValueRange args) -> Value { return arith::MulFOp::create(b, args[0], args[0]); });
  Value units = buildMap(builder, all, builder.getF32Type(), {{vectors, loopRange(0, 4)}, {norms, loopRange(0, 3)}},
                         [](LocBuilder &b, ValueRange args) -> Value {
                           Value zero = constantF32(b, 0);
                           Value unit = arith::DivFOp::create(b, args[0], math::SqrtOp::create(b, args[1]));
                           return choose(b, compare(b, arith::CmpFPredicate::OEQ, args[1], zero), zero, unit);
                         });
  all[2] = blocks;
  auto average = [&](Value of) {
    SmallVector<Operand> loops{ofSize(builder, all[3], Element), ofSize(builder, builder.getIndexAttr(size), Place)};
    Value sums = buildReduce(builder, Reduction::Sum, all, loops, [&](LocBuilder &b, ValueRange) -> Value {
      IndexBuilder index{b};
      Value position = index.add(index.times(index.loop(2), size), index.loop(Place)),
            exists = index.isLess(position, count);
      Value x = extractF32(
          b, of, {index.loop(0), index.loop(1), choose(b, exists, position, index.constant(0)), index.loop(Element)});
      return choose(b, exists, x, constantF32(b, 0));
    });
    SmallVector<Operand> operands{{sums, loopRange(0, 4)}};
    if (keyBegin)
      operands.push_back({keyBegin, {Batch}});
    return buildMap(builder, all, builder.getF32Type(), operands, [&](LocBuilder &b, ValueRange args) -> Value {
      IndexBuilder index{b};
      Value first = index.times(index.loop(2), size),
            end = index.smaller(index.add(first, index.constant(size)), count);
      if (keyBegin)
        first = index.larger(first, index.of(args.back()));
      return arith::DivFOp::create(b, args[0], asF32(b, index.larger(index.sub(end, first), index.constant(1))));
    });
  };
  Value directions = average(units);
  Value similarities =
      buildReduce(builder, Reduction::Sum, ArrayRef(all).drop_back(), {{directions, loopRange(0, 4)}},
                  [](LocBuilder &b, ValueRange args) -> Value { return arith::MulFOp::create(b, args[0], args[0]); });
  return {average(vectors), similarities};
}

Value MeansBuilder::isVisible(LocBuilder &b, Value list, Value block, Value keyBegin) {
  IndexBuilder index{b};
  Value end = index.smaller(index.times(index.add(list, index.constant(1)), op.getQueries()), queries);
  Value isSeen = index.isLess(index.times(block, op.getSize()), index.add(index.sub(keys, queries), end));
  if (!keyBegin)
    return isSeen;
  return index.both(isSeen,
                    index.isLess(index.of(keyBegin), index.times(index.add(block, index.constant(1)), op.getSize())));
}

/// Minus infinity for blocks that are not similar, or not visible.
Value MeansBuilder::buildScores(const PooledBlocks &lists, const PooledBlocks &blocks) {
  Value means = expandHeads(builder, lists.means, 1, sizes[Head]); // [B, Hk, G, lists, D]
  Sizes all = sizes;
  all.push_back(getSize(builder, means, 2));
  Value products =
      buildContraction(builder, all, {means, {Batch, Head, Group, List, 5}}, {blocks.means, {Batch, Head, Block, 5}});
  SmallVector<Operand> operands{{products, loopRange(0, 5)}, {blocks.similarities, {Batch, Head, Block}}};
  operands.append(getKeyBegin());
  return buildMap(builder, all, builder.getF32Type(), operands, [&](LocBuilder &b, ValueRange args) -> Value {
    IndexBuilder index{b};
    Value isSimilar = compare(b, arith::CmpFPredicate::OGE, args[1], extractThreshold(b, 2));
    Value isScored = index.both(
        isSimilar, isVisible(b, index.loop(List), index.loop(Block), op.getKeyBegin() ? args.back() : Value()));
    Value score = arith::MulFOp::create(b, args[0], constantF32(b, op.getScale().convertToFloat()));
    return choose(b, isScored, score, constantF32(b, -kInfinity));
  });
}

/// The importance of blocks, and infinity for those that are listed whatever it is.
Value MeansBuilder::buildOrder(const PooledBlocks &lists, const PooledBlocks &blocks, Value importance) {
  Value similarities = expandHeads(builder, lists.similarities, 1, sizes[Head]); // [B, Hk, G, lists]
  Value dissimilarity =
      buildReduce(builder, Reduction::Max, ArrayRef(sizes).drop_back(), {{similarities, {Batch, Head, 3, List}}},
                  [](LocBuilder &b, ValueRange args) -> Value { return arith::NegFOp::create(b, args[0]); });
  Value few = arith::ConstantIndexOp::create(builder, SelectMeansOp::kFewQueries);
  Value areFew = arith::CmpIOp::create(builder, arith::CmpIPredicate::sle, queries, few);
  return buildMap(
      builder, sizes, builder.getF32Type(),
      {{importance, loopRange(0, 4)}, {blocks.similarities, {Batch, Head, Block}}, {dissimilarity, loopRange(0, 3)}},
      [&](LocBuilder &b, ValueRange args) -> Value {
        Value threshold = extractThreshold(b, 2);
        Value isDissimilar = compare(b, arith::CmpFPredicate::OLT, args[1], threshold);
        Value areDissimilar = compare(b, arith::CmpFPredicate::OLT, arith::NegFOp::create(b, args[2]), threshold);
        Value isListed = arith::OrIOp::create(b, areFew, arith::OrIOp::create(b, isDissimilar, areDissimilar));
        return choose(b, isListed, constantF32(b, kInfinity), args[0]);
      });
}

/// How much candidates are to have of `values`: the share that `threshold` is of all of them, without that of the other blocks.
Value MeansBuilder::buildGoal(Value values, int64_t threshold, const BlockRanking &ranking) {
  SmallVector<int64_t> list = loopRange(0, 3);
  return buildMap(builder, ArrayRef(sizes).drop_back(), builder.getF32Type(),
                  {{ranking.sumAll(values), list}, {ranking.sumOthers(values), list}},
                  [&](LocBuilder &b, ValueRange args) -> Value {
                    Value share = extractThreshold(b, threshold), one = constantF32(b, 1);
                    Value wanted = arith::SubFOp::create(b, arith::MulFOp::create(b, share, args[0]), args[1]);
                    Value isAll = compare(b, arith::CmpFPredicate::OGE, share, one); // also of those that have nothing
                    return choose(b, isAll, constantF32(b, kInfinity), wanted);
                  });
}

Value MeansBuilder::build() {
  PooledBlocks lists = pool(op.getQuery(), Value(), op.getQueries(), sizes[List]);
  PooledBlocks blocks = pool(centreKeys(), op.getKeyBegin(), op.getSize(), sizes[Block]);
  Value importance = sumSoftmaxes(builder, buildScores(lists, blocks));
  Value visible =
      buildMap(builder, sizes, builder.getF32Type(), getKeyBegin(), [&](LocBuilder &b, ValueRange args) -> Value {
        IndexBuilder index{b};
        Value isSeen = isVisible(b, index.loop(List), index.loop(Block), op.getKeyBegin() ? args.back() : Value());
        return choose(b, isSeen, constantF32(b, 1), constantF32(b, 0));
      });
  BlockRanking ranking(builder, sizes, op.getBegin(), op.getEnd());
  BlockRanking::Goal goal{buildGoal(importance, 1, ranking), buildGoal(visible, 0, ranking)};
  return ranking.buildLists(importance, buildOrder(lists, blocks, importance), goal, sizes[Block]);
}

Value hone::decomposeSelectMeans(LocBuilder &builder, SelectMeansOp op) { return MeansBuilder(builder, op).build(); }
