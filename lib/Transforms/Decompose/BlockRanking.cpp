// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of blocks in order: a block is at the place that is the number of those that go before it, so that all blocks are compared with
// all.

#include "SelectionParts.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace hone;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Value hone::sumSoftmaxes(LocBuilder &builder, Value scores) {
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), scores), rows{sizes[0], sizes[1], sizes[2], sizes[4]};
  SmallVector<int64_t> row{0, 1, 2, 4}, all = loopRange(0, 5), swapped{0, 1, 2, 4, 3};
  auto first = [](LocBuilder &, ValueRange args) { return args[0]; };
  Value maxima = buildReduce(builder, Reduction::Max, rows, {{scores, swapped}}, first);
  Value exps =
      buildMap(builder, sizes, builder.getF32Type(), {{scores, all}, {maxima, row}},
               [](LocBuilder &b, ValueRange args) -> Value {
                 Value none = constantF32(b, -kInfinity);
                 Value exp = math::ExpOp::create(b, arith::SubFOp::create(b, args[0], args[1]));
                 return choose(b, compare(b, arith::CmpFPredicate::OEQ, args[0], none), constantF32(b, 0), exp);
               });
  Value sums = buildReduce(builder, Reduction::Sum, rows, {{exps, swapped}}, first);
  return buildReduce(builder, Reduction::Sum, ArrayRef(sizes).drop_back(), {{exps, all}, {sums, row}},
                     [](LocBuilder &b, ValueRange args) -> Value {
                       Value zero = constantF32(b, 0), share = arith::DivFOp::create(b, args[0], args[1]);
                       return choose(b, compare(b, arith::CmpFPredicate::OEQ, args[0], zero), zero, share);
                     });
}

SmallVector<Operand> BlockRanking::getInterval() const {
  SmallVector<Operand> operands;
  for (Value bounds : {begin, end}) {
    bool isRepeated = cast<RankedTensorType>(bounds.getType()).getDimSize(0) == 1;
    operands.push_back({bounds, {isRepeated ? Repeated : Batch, List}});
  }
  return operands;
}

Value BlockRanking::isCandidate(LocBuilder &b, ValueRange interval, int64_t loop) {
  IndexBuilder index{b};
  Value block = index.loop(loop);
  return index.both(index.isLess(index.sub(index.of(interval[0]), index.constant(1)), block),
                    index.isLess(block, index.of(interval[1])));
}

Value BlockRanking::sum(Value values, bool areAll) const {
  SmallVector<Operand> operands{{values, loopRange(0, 4)}};
  operands.append(getInterval());
  return buildReduce(builder, Reduction::Sum, ArrayRef(sizes).drop_back(), operands,
                     [&](LocBuilder &b, ValueRange args) -> Value {
                       Value isLeftOut = isCandidate(b, args.drop_front(), Block);
                       return areAll ? args[0] : choose(b, isLeftOut, constantF32(b, 0), args[0]);
                     });
}

Value BlockRanking::sumAll(Value values) const { return sum(values, true); }

Value BlockRanking::sumOthers(Value values) const { return sum(values, false); }

/// Of the candidates that go before each block: the sum of `values`, or how many they are where that is null.
Value BlockRanking::sumBefore(Value order, Value values) const {
  constexpr int64_t kOther = Block + 1; // the loop over what each block is compared with
  SmallVector<int64_t> other{Batch, Head, List, kOther};
  SmallVector<Operand> operands{{order, loopRange(0, 4)}, {order, other}};
  operands.append(getInterval());
  if (values)
    operands.push_back({values, other});
  return buildReduce(builder, Reduction::Sum, sizes, operands, [&](LocBuilder &b, ValueRange args) -> Value {
    IndexBuilder index{b};
    Value isGreater = compare(b, arith::CmpFPredicate::OGT, args[1], args[0]);
    Value isEqual = compare(b, arith::CmpFPredicate::OEQ, args[1], args[0]);
    Value isFirst = index.both(isEqual, index.isLess(index.loop(kOther), index.loop(Block)));
    Value goesBefore = arith::OrIOp::create(b, isGreater, isFirst);
    goesBefore = index.both(goesBefore, isCandidate(b, args.drop_front(2), kOther));
    return choose(b, goesBefore, values ? args.back() : constantF32(b, 1), constantF32(b, 0));
  });
}

/// Numbers of blocks are exact as f32 below 2^24.
Value BlockRanking::buildLists(Value importance, Value order, const Goal &goal, OpFoldResult places) const {
  Value none = constantF32(builder, -1);
  SmallVector<int64_t> list = loopRange(0, 3), all = loopRange(0, 4);
  SmallVector<Operand> operands{{sumBefore(order, Value()), all}, {order, all}};
  operands.append(getInterval());
  int64_t first = operands.size();
  for (auto [wanted, values] : {std::pair(goal.importance, importance), std::pair(goal.blocks, Value())})
    if (wanted)
      operands.append({{wanted, list}, {sumBefore(order, values), all}});
  Value numbers =
      buildMap(builder, sizes, builder.getF32Type(), operands, [&](LocBuilder &b, ValueRange args) -> Value {
        Value isNeeded = compare(b, arith::CmpFPredicate::OEQ, args[1], constantF32(b, kInfinity));
        for (int64_t i = first, end = args.size(); i < end; i += 2)
          isNeeded = arith::OrIOp::create(b, isNeeded, compare(b, arith::CmpFPredicate::OLT, args[i + 1], args[i]));
        Value isListed = isCandidate(b, args.drop_front(2), Block);
        if (goal.importance || goal.blocks)
          isListed = IndexBuilder{b}.both(isListed, isNeeded);
        return choose(b, isListed, args[0], none);
      });
  Sizes lists = sizes;
  lists.back() = places;
  // Loop 3 is a place, and loop 4 a block.
  Value blocks = buildReduce(builder, Reduction::Max, lists, {{numbers, {Batch, Head, List, 4}}},
                             [&](LocBuilder &b, ValueRange args) {
                               IndexBuilder index{b};
                               Value isThere = compare(b, arith::CmpFPredicate::OEQ, args[0], asF32(b, index.loop(3)));
                               return choose(b, isThere, asF32(b, index.loop(4)), none);
                             });
  Value init = tensor::EmptyOp::create(builder, lists, builder.getI64Type());
  SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(4));
  SmallVector<utils::IteratorType> loops(4, utils::IteratorType::parallel);
  auto toInteger = [&](OpBuilder &nested, Location loc,
                       ValueRange args) { // of no blocks the greatest is minus infinity
    Value block = arith::MaximumFOp::create(nested, loc, args[0], none);
    linalg::YieldOp::create(nested, loc, arith::FPToSIOp::create(nested, loc, nested.getI64Type(), block).getResult());
  };
  return linalg::GenericOp::create(builder, init.getType(), blocks, init, maps, loops, toInteger).getResult(0);
}
