//===- DecomposeSelection.cpp - decompositions of pool_keys and select_blocks -----------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block is at the place of a list that is the number of those that go before it: all blocks are compared with all.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace hone;

namespace {

/// Arithmetic on indices, in the step of a computation.
struct IndexBuilder {
  LocBuilder &b;

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, value); }
  Value loop(int64_t number) { return linalg::IndexOp::create(b, number); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value times(Value x, int64_t by) { return arith::MulIOp::create(b, x, constant(by)); }
  Value divide(Value x, int64_t by) { return arith::DivUIOp::create(b, x, constant(by)); }
  Value modulo(Value x, int64_t by) { return arith::RemUIOp::create(b, x, constant(by)); }
  Value larger(Value x, Value y) { return arith::MaxSIOp::create(b, x, y); }
  Value smaller(Value x, Value y) { return arith::MinSIOp::create(b, x, y); }
  Value isLess(Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value of(Value integer) { return arith::IndexCastOp::create(b, b.getIndexType(), integer); }
};

Value choose(LocBuilder &b, Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }

Value compare(LocBuilder &b, arith::CmpFPredicate predicate, Value x, Value y) {
  return arith::CmpFOp::create(b, predicate, x, y);
}

/// What gives a loop its size, and is not read.
Operand ofSize(LocBuilder &b, OpFoldResult size, int64_t loop) {
  return {tensor::EmptyOp::create(b, ArrayRef<OpFoldResult>{size}, b.getF32Type()), {loop}};
}

} // namespace

//===- pool_keys --------------------------------------------------------------------------------------------------===//

namespace {

/// The element of a pooled key that a row of the result `[B, Hk, fresh, W]` has, in a step over it.
struct PooledElement {
  Value begin, end; // its keys, none where the row has no such element
  Value element;    // of the key
};

} // namespace

static PooledElement findElement(LocBuilder &b, PoolKeysOp op, Value firstRow, Value keyBegin) {
  IndexBuilder index{b};
  int64_t size = op.getSize(), width = op.getType().getDimSize(3);
  Value zero = index.constant(0), row = index.add(firstRow, index.loop(2));
  Value end = index.times(index.divide(row, size), size); // of block n, where the row is in block n + 1
  Value begin = index.larger(index.sub(end, index.constant(size)), zero);
  if (keyBegin)
    begin = index.smaller(index.larger(begin, index.of(keyBegin)), end);
  Value element = index.add(index.times(index.modulo(row, size), width), index.loop(3));
  Value exists = index.isLess(element, index.constant(op.getKeys().getType().getDimSize(3)));
  return {choose(b, exists, begin, end), end, choose(b, exists, element, zero)};
}

static Value decomposePoolKeys(LocBuilder &builder, PoolKeysOp op) {
  Sizes sizes = getResultSizes(builder, op);
  Value count = asIndex(builder, getSize(builder, op.getKeys(), 2));
  Value firstRow = arith::SubIOp::create(builder, count, asIndex(builder, sizes[2]));
  SmallVector<Operand> perSequence;
  if (op.getKeyBegin())
    perSequence.push_back({op.getKeyBegin(), {0}});
  auto find = [&](LocBuilder &b, ValueRange args) {
    return findElement(b, op, firstRow, op.getKeyBegin() ? args.back() : Value());
  };
  SmallVector<Operand> operands{ofSize(builder, builder.getIndexAttr(op.getSize()), 4)};
  operands.append(perSequence);
  Value sum = buildReduce(builder, Reduction::Sum, sizes, operands, [&](LocBuilder &b, ValueRange args) -> Value {
    IndexBuilder index{b};
    PooledElement pooled = find(b, args);
    Value key = index.add(pooled.begin, index.loop(4)), isPooled = index.isLess(key, pooled.end);
    Value read = choose(b, isPooled, key, index.constant(0));
    Value x = extractF32(b, op.getKeys(), {index.loop(0), index.loop(1), read, pooled.element});
    return choose(b, isPooled, x, constantF32(b, 0));
  });
  operands = {{sum, loopRange(0, 4)}};
  operands.append(perSequence);
  return buildMap(builder, sizes, builder.getF32Type(), operands, [&](LocBuilder &b, ValueRange args) -> Value {
    IndexBuilder index{b};
    PooledElement pooled = find(b, args);
    Value keys = index.larger(index.sub(pooled.end, pooled.begin), index.constant(1));
    return arith::DivFOp::create(b, args[0], asF32(b, keys));
  });
}

//===- select_blocks ----------------------------------------------------------------------------------------------===//

namespace {

/// Loops of the scores `[B, Hk, Sq, blocks, G]`, of which importance has the first four.
enum : int64_t { Batch, Head, Query, Block, Group, Inner };

class SelectionBuilder {
public:
  SelectionBuilder(LocBuilder &builder, SelectBlocksOp op) : builder(builder), op(op) {}
  Value build() { return buildLists(buildImportance(buildScores())); }

private:
  Value buildPooledKeys();
  Value buildScores();
  Value buildImportance(Value scores);
  Value buildLists(Value importance);
  Value countBefore(Value importance);
  void addInterval(SmallVector<Operand> &operands);
  Value isCandidate(LocBuilder &b, ValueRange interval, int64_t loop);

  LocBuilder &builder;
  SelectBlocksOp op;
  Sizes sizes; // of importance
};

} // namespace

/// The pooled keys `[B, Hk, blocks, D]` of blocks that are whole.
Value SelectionBuilder::buildPooledKeys() {
  IndexBuilder index{builder};
  int64_t size = op.getSize(), width = op.getPooled().getType().getDimSize(3);
  Sizes pooled = tensor::getMixedSizes(builder, builder.getLoc(), op.getPooled());
  Value blocks = index.sub(index.divide(asIndex(builder, pooled[2]), size), index.constant(1));
  pooled[2] = index.larger(blocks, index.constant(0));
  pooled[3] = getSize(builder, op.getQuery(), 3);
  return buildMap(builder, pooled, builder.getF32Type(), {}, [&](LocBuilder &b, ValueRange) {
    IndexBuilder at{b};
    Value first = at.times(at.add(at.loop(2), at.constant(1)), size), row = at.add(first, at.divide(at.loop(3), width));
    return extractF32(b, op.getPooled(), {at.loop(0), at.loop(1), row, at.modulo(at.loop(3), width)});
  });
}

void SelectionBuilder::addInterval(SmallVector<Operand> &operands) {
  for (Value bounds : {op.getBegin(), op.getEnd()}) {
    bool isRepeated = cast<RankedTensorType>(bounds.getType()).getDimSize(0) == 1;
    operands.push_back({bounds, {isRepeated ? Repeated : Batch, Query}});
  }
}

/// Whether the block of that loop is one that may be selected; `interval` are begin and end.
Value SelectionBuilder::isCandidate(LocBuilder &b, ValueRange interval, int64_t loop) {
  IndexBuilder index{b};
  Value block = index.loop(loop), isBefore = index.isLess(block, index.of(interval[0]));
  Value isEarlier = arith::XOrIOp::create(b, isBefore, arith::ConstantOp::create(b, b.getBoolAttr(true)));
  return index.both(isEarlier, index.isLess(block, index.of(interval[1])));
}

Value SelectionBuilder::buildScores() {
  Value pooled = buildPooledKeys();
  Value query = expandHeads(builder, op.getQuery(), 1, getSize(builder, op.getPooled(), 1)); // [B, Hk, G, Sq, D]
  sizes = tensor::getMixedSizes(builder, builder.getLoc(), pooled);
  sizes.insert(sizes.begin() + Query, getSize(builder, query, 3));
  sizes[Group] = getSize(builder, query, 2);
  Value products = buildContraction(builder, sizes, {query, {Batch, Head, Group, Query, Inner}},
                                    {pooled, {Batch, Head, Block, Inner}});
  SmallVector<Operand> operands{{products, loopRange(0, 5)}};
  addInterval(operands);
  return buildMap(builder, sizes, builder.getF32Type(), operands, [&](LocBuilder &b, ValueRange args) {
    Value score = arith::MulFOp::create(b, args[0], constantF32(b, op.getScale().convertToFloat()));
    Value none = constantF32(b, -std::numeric_limits<float>::infinity());
    return choose(b, isCandidate(b, args.drop_front(), Block), score, none);
  });
}

/// The sum of the softmaxes of the heads of a group.
Value SelectionBuilder::buildImportance(Value scores) {
  Sizes rows{sizes[Batch], sizes[Head], sizes[Query], sizes[Group]};
  SmallVector<int64_t> row{Batch, Head, Query, Group}, all = loopRange(0, 5), swapped{0, 1, 2, 4, 3};
  Value maxima = buildReduce(builder, Reduction::Max, rows, {{scores, swapped}},
                             [](LocBuilder &, ValueRange args) { return args[0]; });
  Value exps = buildMap(builder, sizes, builder.getF32Type(), {{scores, all}, {maxima, row}},
                        [](LocBuilder &b, ValueRange args) -> Value {
                          return math::ExpOp::create(b, arith::SubFOp::create(b, args[0], args[1]));
                        });
  Value sums = buildReduce(builder, Reduction::Sum, rows, {{exps, swapped}},
                           [](LocBuilder &, ValueRange args) { return args[0]; });
  return buildReduce(
      builder, Reduction::Sum, ArrayRef(sizes).drop_back(), {{exps, all}, {sums, row}},
      [](LocBuilder &b, ValueRange args) -> Value { return arith::DivFOp::create(b, args[0], args[1]); });
}

/// How many blocks go before each.
Value SelectionBuilder::countBefore(Value importance) {
  SmallVector<Operand> operands{{importance, {0, 1, 2, 3}}, {importance, {0, 1, 2, 4}}};
  addInterval(operands);
  return buildReduce(builder, Reduction::Sum, ArrayRef(sizes).drop_back(), operands,
                     [&](LocBuilder &b, ValueRange args) -> Value {
                       IndexBuilder index{b};
                       Value isGreater = compare(b, arith::CmpFPredicate::OGT, args[1], args[0]);
                       Value isEqual = compare(b, arith::CmpFPredicate::OEQ, args[1], args[0]);
                       Value isFirst = index.both(isEqual, index.isLess(index.loop(4), index.loop(3)));
                       Value goesBefore = arith::OrIOp::create(b, isGreater, isFirst);
                       goesBefore = index.both(goesBefore, isCandidate(b, args.drop_front(2), 4));
                       return choose(b, goesBefore, constantF32(b, 1), constantF32(b, 0));
                     });
}

/// Which block has as many before it as the number of each place. Numbers of blocks are exact as f32 below 2^24.
Value SelectionBuilder::buildLists(Value importance) {
  Sizes lists(ArrayRef(sizes).drop_back());
  lists.back() = builder.getIndexAttr(op.getType().getDimSize(3));
  SmallVector<Operand> operands{{countBefore(importance), {0, 1, 2, 4}}};
  addInterval(operands);
  Value none = constantF32(builder, -1);
  Value blocks = buildReduce(builder, Reduction::Max, lists, operands, [&](LocBuilder &b, ValueRange args) {
    IndexBuilder index{b};
    Value isThere = compare(b, arith::CmpFPredicate::OEQ, args[0], asF32(b, index.loop(3)));
    isThere = index.both(isThere, isCandidate(b, args.drop_front(), 4));
    return choose(b, isThere, asF32(b, index.loop(4)), none);
  });
  Value init = tensor::EmptyOp::create(builder, lists, builder.getI64Type());
  SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(4));
  SmallVector<utils::IteratorType> loops(4, utils::IteratorType::parallel);
  auto toInteger = [&](OpBuilder &nested, Location loc, ValueRange args) {
    Value block = arith::MaximumFOp::create(nested, loc, args[0], none);
    linalg::YieldOp::create(nested, loc, arith::FPToSIOp::create(nested, loc, nested.getI64Type(), block).getResult());
  };
  return linalg::GenericOp::create(builder, init.getType(), blocks, init, maps, loops, toInteger).getResult(0);
}

static Value decomposeSelectBlocks(LocBuilder &builder, SelectBlocksOp op) {
  return SelectionBuilder(builder, op).build();
}

void hone::addSelectionDecompositions(RewritePatternSet &patterns) {
  addDecomposition<PoolKeysOp>(patterns, decomposePoolKeys);
  addDecomposition<SelectBlocksOp>(patterns, decomposeSelectBlocks);
}
