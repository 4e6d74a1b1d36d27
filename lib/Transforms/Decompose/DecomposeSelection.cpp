//===- DecomposeSelection.cpp - decompositions of pool_keys and select_blocks -----------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"
#include "SelectionParts.h"

#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <limits>

using namespace mlir;
using namespace hone;

//===- pool_keys --------------------------------------------------------------------------------------------------===//

namespace {

/// The element of a pooled key that a row of the result `[B, Hk, fresh, W]` has, in a step over it.
struct PooledElement {
  Value begin, end; // its keys, none where the row has no such element
  Value element;    // of the key
  Value isUpper;    // of bounds: it is the largest, and not the smallest
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
  int64_t keySize = op.getKeys().getType().getDimSize(3);
  Value exists = index.isLess(element, index.constant(op.getBounds() ? 2 * keySize : keySize));
  Value isUpper;
  if (op.getBounds()) {
    isUpper = index.isLess(element, index.constant(keySize));
    element = choose(b, isUpper, element, index.sub(element, index.constant(keySize)));
  }
  return {choose(b, exists, begin, end), end, choose(b, exists, element, zero), isUpper};
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
  // The smallest is the largest with the other sign.
  auto turn = [&](LocBuilder &b, const PooledElement &pooled, Value x) -> Value {
    return op.getBounds() ? choose(b, pooled.isUpper, x, arith::NegFOp::create(b, x)) : x;
  };
  float none = op.getBounds() ? -std::numeric_limits<float>::infinity() : 0.0f;
  Reduction reduction = op.getBounds() ? Reduction::Max : Reduction::Sum;
  Value whole = buildReduce(builder, reduction, sizes, operands, [&](LocBuilder &b, ValueRange args) -> Value {
    IndexBuilder index{b};
    PooledElement pooled = find(b, args);
    Value key = index.add(pooled.begin, index.loop(4)), isPooled = index.isLess(key, pooled.end);
    Value read = choose(b, isPooled, key, index.constant(0));
    Value x = extractF32(b, op.getKeys(), {index.loop(0), index.loop(1), read, pooled.element});
    return choose(b, isPooled, turn(b, pooled, x), constantF32(b, none));
  });
  operands = {{whole, loopRange(0, 4)}};
  operands.append(perSequence);
  return buildMap(builder, sizes, builder.getF32Type(), operands, [&](LocBuilder &b, ValueRange args) -> Value {
    IndexBuilder index{b};
    PooledElement pooled = find(b, args);
    if (op.getBounds())
      return choose(b, index.isLess(pooled.begin, pooled.end), turn(b, pooled, args[0]), constantF32(b, 0));
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
  Value build() { return buildLists(sumSoftmaxes(builder, buildScores())); }

private:
  Value buildPooledKeys(int64_t begin);
  Value buildProducts(Value query);
  Value buildScores();
  Value buildLists(Value importance);
  BlockRanking getRanking(const Sizes &of) { return BlockRanking(builder, of, op.getBegin(), op.getEnd()); }

  LocBuilder &builder;
  SelectBlocksOp op;
  Sizes sizes; // of importance
};

} // namespace

/// The elements `[B, Hk, blocks, D]` from `begin` on of the vectors of blocks that are whole.
Value SelectionBuilder::buildPooledKeys(int64_t begin) {
  IndexBuilder index{builder};
  int64_t size = op.getSize(), width = op.getPooled().getType().getDimSize(3);
  Sizes pooled = tensor::getMixedSizes(builder, builder.getLoc(), op.getPooled());
  Value blocks = index.sub(index.divide(asIndex(builder, pooled[2]), size), index.constant(1));
  pooled[2] = index.larger(blocks, index.constant(0));
  pooled[3] = getSize(builder, op.getQuery(), 3);
  return buildMap(builder, pooled, builder.getF32Type(), {}, [&](LocBuilder &b, ValueRange) {
    IndexBuilder at{b};
    Value first = at.times(at.add(at.loop(2), at.constant(1)), size), element = at.add(at.loop(3), at.constant(begin));
    Value row = at.add(first, at.divide(element, width));
    return extractF32(b, op.getPooled(), {at.loop(0), at.loop(1), row, at.modulo(element, width)});
  });
}

/// Sums over the elements of the query `[B, Hk, G, Sq, D]`, without the scale.
Value SelectionBuilder::buildProducts(Value query) {
  Value pooled = buildPooledKeys(0);
  sizes = tensor::getMixedSizes(builder, builder.getLoc(), pooled);
  sizes.insert(sizes.begin() + Query, getSize(builder, query, 3));
  sizes[Group] = getSize(builder, query, 2);
  SmallVector<int64_t> ofQuery{Batch, Head, Group, Query, Inner}, ofBlock{Batch, Head, Block, Inner};
  if (!op.getBounds())
    return buildContraction(builder, sizes, {query, ofQuery}, {pooled, ofBlock});
  Value lower = buildPooledKeys(op.getQuery().getType().getDimSize(3));
  bool isNegative = op.getScale().isNegative(); // what is largest is smallest then
  SmallVector<Operand> operands{{query, ofQuery}, {pooled, ofBlock}, {lower, ofBlock}};
  return buildReduce(builder, Reduction::Sum, sizes, operands, [&](LocBuilder &b, ValueRange args) -> Value {
    Value x = arith::MulFOp::create(b, args[0], args[1]), y = arith::MulFOp::create(b, args[0], args[2]);
    auto predicate = isNegative ? arith::CmpFPredicate::OLT : arith::CmpFPredicate::OGT;
    return choose(b, compare(b, predicate, x, y), x, y);
  });
}

Value SelectionBuilder::buildScores() {
  Value query = expandHeads(builder, op.getQuery(), 1, getSize(builder, op.getPooled(), 1)); // [B, Hk, G, Sq, D]
  Value products = buildProducts(query);
  SmallVector<Operand> operands{{products, loopRange(0, 5)}};
  operands.append(getRanking(sizes).getInterval());
  return buildMap(builder, sizes, builder.getF32Type(), operands, [&](LocBuilder &b, ValueRange args) {
    Value score = arith::MulFOp::create(b, args[0], constantF32(b, op.getScale().convertToFloat()));
    Value none = constantF32(b, -std::numeric_limits<float>::infinity());
    return choose(b, BlockRanking::isCandidate(b, args.drop_front(), Block), score, none);
  });
}

Value SelectionBuilder::buildLists(Value importance) {
  Sizes blocks(ArrayRef(sizes).drop_back());
  return getRanking(blocks).buildLists(importance, importance, {}, builder.getIndexAttr(op.getType().getDimSize(3)));
}

static Value decomposeSelectBlocks(LocBuilder &builder, SelectBlocksOp op) {
  return SelectionBuilder(builder, op).build();
}

void hone::addSelectionDecompositions(RewritePatternSet &patterns) {
  addDecomposition<PoolKeysOp>(patterns, decomposePoolKeys);
  addDecomposition<SelectBlocksOp>(patterns, decomposeSelectBlocks);
  addDecomposition<SelectAntidiagonalsOp>(patterns, decomposeSelectAntidiagonals);
  addDecomposition<SelectMeansOp>(patterns, decomposeSelectMeans);
}
