// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of blocks, whose places are those of sinks, of the window, and of what is selected.

#include "BlockLists.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace hone;

/// Queries that share a list for each key of a block, with means: 128 beside 64 in SpargeAttention (Zhang et al., 2025).
static constexpr int64_t kQueriesPerKey = 2;

static int64_t getQueriesPerList(const SparsifyAttentionOptions &options) {
  if (options.means)
    return options.block * kQueriesPerKey;
  return options.share > 0 ? llvm::alignTo(options.block, kAntidiagonalStride) : 1;
}

BlockLists::BlockLists(AttentionOp op, const SparsifyAttentionOptions &options)
    : b(op.getLoc(), op), op(op), options(options), sinks(options.sinks), window(options.window), size(options.block),
      perList(getQueriesPerList(options)),
      // The first key may be in the middle of a block, and the first of the window always.
      sinkBlocks(llvm::divideCeil(sinks, size) + (op.getKeyBegin() && sinks > 0 ? 1 : 0)),
      windowBlocks(llvm::divideCeil(window + perList - 1, size) + 1),
      sequences(op.getKeyBegin() || op.getLags() ? tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 0)
                                                 : OpFoldResult(b.getIndexAttr(1))),
      lists(tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 2)) {
  queries = getValueOrCreateConstantIndexOp(b, op.getLoc(), lists);
  keys = tensor::DimOp::create(b, op.getKey(), 2);
  first = arith::SubIOp::create(b, keys, queries);
  if (perList > 1)
    lists = arith::CeilDivSIOp::create(b, queries, arith::ConstantIndexOp::create(b, perList)).getResult();
}

Value BlockLists::build() {
  return buildLists({sequences, b.getIndexAttr(1), lists, b.getIndexAttr(sinkBlocks + windowBlocks)}, Value());
}

Value BlockLists::buildPooled(Value pooled) {
  Value begin = buildBegin(), end = buildEnd();
  OpFoldResult places = b.getIndexAttr(options.blocks);
  Value selected = SelectBlocksOp::create(b, getType(getSizes(places)), op.getQuery(), pooled, begin, end, size,
                                          op.getScale(), options.bounds);
  return buildSelected(selected, places);
}

Value BlockLists::buildShares() {
  Value begin = buildBegin(), end = buildEnd(), places = countBlocks();
  Value selected = SelectAntidiagonalsOp::create(b, getType(getSizes(places)), op.getQuery(), op.getKey(), begin, end,
                                                 op.getKeyBegin(), size, perList, kAntidiagonalStride, op.getScale(),
                                                 APFloat(static_cast<float>(options.share)));
  return buildSelected(selected, places);
}

Value BlockLists::buildMeans(Value thresholds) {
  Value begin = buildBegin(), end = buildEnd(), places = countBlocks();
  Value selected = SelectMeansOp::create(b, getType(getSizes(places)), op.getQuery(), op.getKey(), thresholds, begin,
                                         end, op.getKeyBegin(), size, perList, op.getScale());
  return buildSelected(selected, places);
}

void BlockLists::selectForFew() { isForFew = true; }

Value BlockLists::areFew() {
  static_assert(SelectMeansOp::kFewQueries == SelectAntidiagonalsOp::kFewQueries);
  Value most = IndexBuilder{b}.constant(SelectMeansOp::kFewQueries);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, queries, most);
}

Value BlockLists::mergeLists(Value few, Value many) {
  IndexBuilder index{b};
  auto placesOf = [&](Value of) { return tensor::DimOp::create(b, of, 3).getResult(); };
  Value placesOfFew = placesOf(few), placesOfMany = placesOf(many), isFew = areFew();
  SmallVector<OpFoldResult> sizes = getSizes(choose(b, isFew, placesOfFew, placesOfMany));
  sizes[2] = getAsOpFoldResult(queries);
  return buildIntegers(sizes, [&](IndexBuilder &at, ArrayRef<Value> loops, const Sequence &) {
    Value zero = at.constant(0), one = at.constant(1);
    auto read = [&](Value from, Value places, Value list) {
      Value place = at.smaller(loops[3], at.larger(at.sub(places, one), zero));
      Value block = tensor::ExtractOp::create(at.b, from, ValueRange{loops[0], loops[1], list, place});
      return choose(at.b, at.isLess(loops[3], places), at.of(block), at.constant(-1));
    };
    Value ofFew = read(few, placesOfFew, loops[2]), ofMany = read(many, placesOfMany, at.divideDown(loops[2], perList));
    return choose(at.b, isFew, ofFew, ofMany);
  });
}

SmallVector<OpFoldResult> BlockLists::getSizes(OpFoldResult places) {
  return {tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 0), tensor::getMixedSize(b, op.getLoc(), op.getKey(), 1),
          lists, places};
}

RankedTensorType BlockLists::getType(ArrayRef<OpFoldResult> sizes) {
  return RankedTensorType::get(decomposeMixedValues(llvm::to_vector(sizes)).first, b.getI64Type());
}

Value BlockLists::countBlocks() { return IndexBuilder{b}.divideUp(keys, size); }

BlockLists::Query BlockLists::buildQuery(IndexBuilder &index, const Sequence &sequence, Value number) {
  Query query;
  Value firstOwn = index.add(index.sub(first, sequence.lag), index.times(number, perList));
  query.own = firstOwn;
  if (perList > 1)
    query.own = index.smaller(index.add(firstOwn, index.constant(perList - 1)), index.sub(keys, index.constant(1)));
  query.sinkBegin = index.divideDown(sequence.keyBegin, size);
  query.sinkEnd =
      sinks == 0 ? index.constant(0) : index.divideUp(index.add(sequence.keyBegin, index.constant(sinks)), size);
  Value firstKey = index.larger(index.sub(firstOwn, index.constant(window - 1)), index.constant(0));
  query.begin = index.larger(query.sinkBegin, query.sinkEnd);
  query.end = index.larger(index.divideDown(firstKey, size), query.sinkEnd);
  return query;
}

Value BlockLists::buildIntegers(ArrayRef<OpFoldResult> sizes,
                                llvm::function_ref<Value(IndexBuilder &, ArrayRef<Value>, const Sequence &)> element) {
  Value init = tensor::EmptyOp::create(b, sizes, b.getI64Type());
  SmallVector<Value> ofSequences = llvm::to_vector(
      llvm::make_filter_range(ArrayRef<Value>{op.getKeyBegin(), op.getLags()}, [](Value value) { return !!value; }));
  auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
    ImplicitLocOpBuilder at(loc, nested);
    IndexBuilder index{at};
    SmallVector<Value> loops;
    for (size_t i = 0; i < sizes.size(); ++i)
      loops.push_back(linalg::IndexOp::create(at, i));
    Sequence sequence;
    sequence.keyBegin = op.getKeyBegin() ? index.of(args.front()) : index.constant(0);
    sequence.lag = op.getLags() ? index.of(args[ofSequences.size() - 1]) : index.constant(0);
    Value result = element(index, loops, sequence);
    linalg::YieldOp::create(at, arith::IndexCastOp::create(at, at.getI64Type(), result).getResult());
  };
  AffineMap all = b.getMultiDimIdentityMap(sizes.size());
  SmallVector<AffineMap> maps(ofSequences.size(), all.getMajorSubMap(1));
  maps.push_back(all);
  SmallVector<utils::IteratorType> loops(sizes.size(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, init.getType(), ofSequences, init, maps, loops, body).getResult(0);
}

Value BlockLists::buildBegin() {
  return buildIntegers({sequences, lists}, [&](IndexBuilder &index, ArrayRef<Value> loops, const Sequence &sequence) {
    return buildQuery(index, sequence, loops[1]).begin;
  });
}

Value BlockLists::buildEnd() {
  Value isUsed = isForFew ? areFew() : Value();
  return buildIntegers({sequences, lists}, [&](IndexBuilder &index, ArrayRef<Value> loops, const Sequence &sequence) {
    Query query = buildQuery(index, sequence, loops[1]);
    return isUsed ? choose(index.b, isUsed, query.end, query.begin) : query.end;
  });
}

Value BlockLists::buildSelected(Value selected, OpFoldResult places) {
  Value all = b.createOrFold<arith::AddIOp>(getValueOrCreateConstantIndexOp(b, b.getLoc(), places),
                                            IndexBuilder{b}.constant(sinkBlocks + windowBlocks));
  return buildLists(getSizes(getAsOpFoldResult(all)), selected);
}

Value BlockLists::buildLists(ArrayRef<OpFoldResult> sizes, Value selected) {
  return buildIntegers(sizes, [&](IndexBuilder &index, ArrayRef<Value> loops, const Sequence &sequence) {
    Value place = loops[3], block = buildPlace(index, buildQuery(index, sequence, loops[2]), place);
    if (!selected)
      return block;
    Value number = index.sub(place, index.constant(sinkBlocks + windowBlocks)), zero = index.constant(0);
    Value at[] = {loops[0], loops[1], loops[2], index.larger(number, zero)};
    return choose(index.b, index.isLess(number, zero), block,
                  index.of(tensor::ExtractOp::create(index.b, selected, at)));
  });
}

Value BlockLists::buildPlace(IndexBuilder &index, const Query &query, Value place) {
  Value none = index.constant(-1);
  Value sink = index.add(query.sinkBegin, place);
  sink = choose(index.b, index.isLess(sink, query.sinkEnd), sink, none);
  Value back = index.sub(place, index.constant(sinkBlocks));
  Value recent = index.sub(index.divideDown(query.own, size), back);
  recent = choose(index.b, index.isLess(recent, query.end), none, recent);
  return choose(index.b, index.isLess(place, index.constant(sinkBlocks)), sink, recent);
}

void hone::setLists(AttentionOp op, Value lists, int64_t size, int64_t queries) {
  AttentionPatternInterface patterns[] = {op.getPattern(), BlocksAttr::get(op.getContext(), size, queries)};
  op.setPatternAttr(AllOfAttr::get(op.getContext(), patterns));
  op.getPatternOperandsMutable().assign(lists);
}
