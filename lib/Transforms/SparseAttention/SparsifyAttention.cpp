// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-sparsify-attention: causal attention over lists of blocks of keys. What is listed is IR, the operand of `#hone.blocks`.

#include "PooledKeys.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"

namespace hone {
#define GEN_PASS_DEF_SPARSIFYATTENTION
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {
namespace {

constexpr llvm::StringLiteral kPass = "hone-sparsify-attention", kRemark = "SparseAttention";

/// Arithmetic on indices.
struct IndexBuilder {
  ImplicitLocOpBuilder &b;

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, value); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value times(Value x, int64_t by) { return by == 1 ? x : arith::MulIOp::create(b, x, constant(by)).getResult(); }
  Value divide(Value x, int64_t by) { return arith::FloorDivSIOp::create(b, x, constant(by)); }
  Value divideUp(Value x, int64_t by) { return arith::CeilDivSIOp::create(b, x, constant(by)); }
  Value smaller(Value x, Value y) { return arith::MinSIOp::create(b, x, y); }
  Value larger(Value x, Value y) { return arith::MaxSIOp::create(b, x, y); }
  Value isLess(Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y); }
  Value choose(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }
  Value of(Value integer) { return arith::IndexCastOp::create(b, b.getIndexType(), integer); }
};

/// Neighbours whose sums over antidiagonals are scored: the larger of the two that XAttention was measured with (Xu et al., 2025).
constexpr int64_t kAntidiagonalStride = 16;

/// The lists `[B or 1, Hk or 1, lists, T]` of an attention, one for each query or for some next to each other: the blocks with the first keys
/// of a sequence, those with the last before the queries, and of the others some that are selected. So the list of a single query follows
/// from its own position and the keys before it, whatever else is in the call.
class BlockLists {
public:
  BlockLists(AttentionOp op, const SparsifyAttentionOptions &options)
      : b(op.getLoc(), op), op(op), sinks(options.sinks), window(options.window), size(options.block),
        blocks(options.blocks), hasBounds(options.bounds), share(options.share),
        perList(share > 0 ? llvm::alignTo(size, kAntidiagonalStride) : 1),
        // The first key may be in the middle of a block, and the first of the window always.
        sinkBlocks(llvm::divideCeil(sinks, size) + (op.getKeyBegin() && sinks > 0 ? 1 : 0)),
        windowBlocks(llvm::divideCeil(window + perList - 1, size) + 1),
        sequences(op.getKeyBegin() || op.getLags() ? tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 0)
                                                   : OpFoldResult(b.getIndexAttr(1))),
        lists(tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 2)) {
    Value queries = getValueOrCreateConstantIndexOp(b, op.getLoc(), lists);
    keys = tensor::DimOp::create(b, op.getKey(), 2);
    first = arith::SubIOp::create(b, keys, queries);
    if (perList > 1)
      lists = arith::CeilDivSIOp::create(b, queries, arith::ConstantIndexOp::create(b, perList)).getResult();
  }

  /// Queries that share a list.
  int64_t getQueries() const { return perList; }

  /// Of sinks and window.
  Value build() {
    return buildLists({sequences, b.getIndexAttr(1), lists, b.getIndexAttr(sinkBlocks + windowBlocks)}, Value());
  }

  /// With `blocks` more, by the rows of pooled keys.
  Value build(Value pooled) {
    Value begin = buildBound([](const Query &query) { return query.begin; });
    Value end = buildBound([](const Query &query) { return query.end; });
    SmallVector<OpFoldResult> sizes = getSizes(b.getIndexAttr(blocks));
    auto type = RankedTensorType::get(decomposeMixedValues(sizes).first, b.getI64Type());
    Value selected = SelectBlocksOp::create(b, type, op.getQuery(), pooled, begin, end, size, op.getScale(), hasBounds);
    sizes.back() = b.getIndexAttr(sinkBlocks + windowBlocks + blocks);
    return buildLists(sizes, selected);
  }

  /// With those that are needed for a share of the attention, by sums over antidiagonals.
  Value buildShares() {
    Value begin = buildBound([](const Query &query) { return query.begin; });
    Value end = buildBound([](const Query &query) { return query.end; });
    IndexBuilder index{b};
    Value places = index.divideUp(keys, size);
    SmallVector<OpFoldResult> sizes = getSizes(OpFoldResult(places));
    auto type = RankedTensorType::get(decomposeMixedValues(sizes).first, b.getI64Type());
    Value selected =
        SelectAntidiagonalsOp::create(b, type, op.getQuery(), op.getKey(), begin, end, op.getKeyBegin(), size, perList,
                                      kAntidiagonalStride, op.getScale(), APFloat(static_cast<float>(share)));
    sizes.back() = index.add(places, index.constant(sinkBlocks + windowBlocks));
    return buildLists(sizes, selected);
  }

private:
  SmallVector<OpFoldResult> getSizes(OpFoldResult places) {
    return {tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 0),
            tensor::getMixedSize(b, op.getLoc(), op.getKey(), 1), lists, places};
  }

  /// The blocks of the queries of a list, the own key of whose last is `own`, in the step of a computation: sinks are those from `sinkBegin`
  /// to `sinkEnd`, the window those from `end` on, and others may be selected from `begin` to `end`.
  struct Query {
    Value own, sinkBegin, sinkEnd, begin, end;
  };

  /// What the operands of attention say of a sequence, 0 where they are absent.
  struct Sequence {
    Value keyBegin, lag;
  };

  Query buildQuery(IndexBuilder &index, const Sequence &sequence, Value number) {
    Query query;
    Value firstOwn = index.add(index.sub(first, sequence.lag), index.times(number, perList));
    query.own = firstOwn;
    if (perList > 1)
      query.own = index.smaller(index.add(firstOwn, index.constant(perList - 1)), index.sub(keys, index.constant(1)));
    query.sinkBegin = index.divide(sequence.keyBegin, size);
    query.sinkEnd =
        sinks == 0 ? index.constant(0) : index.divideUp(index.add(sequence.keyBegin, index.constant(sinks)), size);
    Value firstKey = index.larger(index.sub(firstOwn, index.constant(window - 1)), index.constant(0));
    query.begin = index.larger(query.sinkBegin, query.sinkEnd);
    query.end = index.larger(index.divide(firstKey, size), query.sinkEnd);
    return query;
  }

  /// The i64 tensor of these sizes, sequences first, that `element` computes, where it is called with the loops.
  Value buildIntegers(ArrayRef<OpFoldResult> sizes,
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

  Value buildBound(llvm::function_ref<Value(const Query &)> get) {
    return buildIntegers({sequences, lists}, [&](IndexBuilder &index, ArrayRef<Value> loops, const Sequence &sequence) {
      return get(buildQuery(index, sequence, loops[1]));
    });
  }

  /// Lists whose last places are those of `selected`, unless it is null.
  Value buildLists(ArrayRef<OpFoldResult> sizes, Value selected) {
    return buildIntegers(sizes, [&](IndexBuilder &index, ArrayRef<Value> loops, const Sequence &sequence) {
      Value place = loops[3], block = buildPlace(index, buildQuery(index, sequence, loops[2]), place);
      if (!selected)
        return block;
      Value number = index.sub(place, index.constant(sinkBlocks + windowBlocks)), zero = index.constant(0);
      Value at[] = {loops[0], loops[1], loops[2], index.larger(number, zero)};
      return index.choose(index.isLess(number, zero), block,
                          index.of(tensor::ExtractOp::create(index.b, selected, at)));
    });
  }

  /// The block at a place of sinks and window, or -1.
  Value buildPlace(IndexBuilder &index, const Query &query, Value place) {
    Value none = index.constant(-1);
    Value sink = index.add(query.sinkBegin, place);
    sink = index.choose(index.isLess(sink, query.sinkEnd), sink, none);
    Value back = index.sub(place, index.constant(sinkBlocks));
    Value recent = index.sub(index.divide(query.own, size), back);
    recent = index.choose(index.isLess(recent, query.end), none, recent);
    return index.choose(index.isLess(place, index.constant(sinkBlocks)), sink, recent);
  }

  ImplicitLocOpBuilder b;
  AttentionOp op;
  int64_t sinks, window, size, blocks;
  bool hasBounds;
  double share;
  int64_t perList, sinkBlocks, windowBlocks;
  OpFoldResult sequences, lists;
  Value keys, first; // how many there are, own key of query 0 of a sequence without a lag
};

/// Why attention stays as it is, or an empty string.
StringRef getBlocker(AttentionOp op, int64_t window) {
  if (auto sliding = dyn_cast<SlidingAttr>(op.getPattern()))
    return sliding.getWindow() <= window ? "its own window is as small" : "";
  if (!isa<CausalAttr>(op.getPattern()))
    return "it is neither causal nor sliding";
  if (op.getKeyPositions())
    return "its keys have positions of their own";
  return "";
}

struct SparsifyAttention : impl::SparsifyAttentionBase<SparsifyAttention> {
  using SparsifyAttentionBase::SparsifyAttentionBase;

  LogicalResult initialize(MLIRContext *context) override {
    auto isKnown = [](int64_t count, int64_t least) { return count >= least && count <= kMostListedKeys; };
    if (!isKnown(sinks, 0) || !isKnown(window, 1) || !isKnown(block, 1))
      return emitError(UnknownLoc::get(context))
             << "expected window and block to be 1 to " << kMostListedKeys << " and sinks 0 to " << kMostListedKeys
             << ", but got " << window.getValue() << ", " << block.getValue() << " and " << sinks.getValue();
    if (blocks < 0 || blocks > kMostListedKeys / block)
      return emitError(UnknownLoc::get(context))
             << "expected blocks to be 0 to " << kMostListedKeys / block << ", but got " << blocks.getValue();
    if (blocks > 0 && window < 2 * block) // the pooled key of a block is whole where the one after it is
      return emitError(UnknownLoc::get(context))
             << "expected window to be at least " << 2 * block << ", two blocks, but got " << window.getValue();
    if (!(share >= 0 && share <= 1) || (share > 0 && blocks > 0))
      return emitError(UnknownLoc::get(context))
             << "expected share to be 0 to 1, and 0 with blocks, but got "
             << llvm::formatv("{0}", share.getValue()).str() << " and " << blocks.getValue();
    if (share > 0 && block % kAntidiagonalStride != 0)
      return emitError(UnknownLoc::get(context)) << "expected block to be a multiple of " << kAntidiagonalStride
                                                 << " with share, but got " << block.getValue();
    return success();
  }

  void runOnOperation() override {
    PooledKeys pooled(getOperation(), block, bounds);
    getOperation().walk([&](AttentionOp op) {
      StringRef blocker = getBlocker(op, window);
      if (blocker.empty() && (blocks > 0 || share > 0) && isa<SlidingAttr>(op.getPattern()))
        blocker = "it has a window of its own";
      if (blocker.empty() && blocks > 0)
        blocker = pooled.getBlocker(op);
      if (blocker.empty() && share > 0 && op.getLags())
        blocker = "its sequences have lengths of their own";
      if (!blocker.empty()) {
        remark::missed(op.getLoc(), remark::RemarkOpts::name(kRemark).category(kPass))
            << ("attention stays dense: " + blocker).str();
        return;
      }
      BlockLists lists(op, {sinks, window, block, blocks, bounds, share});
      setLists(op,
               blocks > 0  ? lists.build(pooled.get(op))
               : share > 0 ? lists.buildShares()
                           : lists.build(),
               lists.getQueries());
    });
  }

private:
  void setLists(AttentionOp op, Value lists, int64_t queries) {
    AttentionPatternInterface patterns[] = {op.getPattern(), BlocksAttr::get(&getContext(), block, queries)};
    op.setPatternAttr(AllOfAttr::get(&getContext(), patterns));
    op.getPatternOperandsMutable().assign(lists);
    ++numAttentions;
    std::string selected = blocks > 0 ? llvm::formatv(", and {0} blocks between them by {1} of their keys",
                                                      blocks.getValue(), bounds ? "bounds" : "the mean")
                                            .str()
                                      : "";
    if (share > 0)
      selected = llvm::formatv(", and in prompts the blocks between them that have {0:P0} of their attention",
                               share.getValue())
                     .str();
    remark::passed(op.getLoc(), remark::RemarkOpts::name(kRemark).category(kPass))
        << llvm::formatv("queries see the first {0} keys and the last {1}, in blocks of {2}", sinks.getValue(),
                         window.getValue(), block.getValue())
                   .str() +
               selected;
  }
};

} // namespace
} // namespace hone
