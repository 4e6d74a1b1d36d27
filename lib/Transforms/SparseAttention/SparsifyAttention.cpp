// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-sparsify-attention: causal attention over lists of blocks of keys. What is listed is IR, the operand of `#hone.blocks`.

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
  Value divide(Value x, int64_t by) { return arith::FloorDivSIOp::create(b, x, constant(by)); }
  Value divideUp(Value x, int64_t by) { return arith::CeilDivSIOp::create(b, x, constant(by)); }
  Value larger(Value x, Value y) { return arith::MaxSIOp::create(b, x, y); }
  Value isLess(Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y); }
  Value choose(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }
  /// Element `sequence` of an operand of attention, or a number where it is absent.
  Value element(Value tensor, Value sequence, int64_t absent) {
    if (!tensor)
      return constant(absent);
    return arith::IndexCastOp::create(b, b.getIndexType(), tensor::ExtractOp::create(b, tensor, sequence));
  }
};

/// The lists of sinks and window, `[B or 1, 1, Sq, T]`: the blocks with the first keys of a sequence, and those with the last before
/// each query. So a query's list follows from its own position, whatever else is in the call.
class SinksAndWindow {
public:
  SinksAndWindow(AttentionOp op, int64_t sinks, int64_t window, int64_t size)
      : op(op), sinks(sinks), window(window), size(size),
        // The first key may be in the middle of a block, and the first of the window always.
        sinkBlocks(llvm::divideCeil(sinks, size) + (op.getKeyBegin() && sinks > 0 ? 1 : 0)),
        windowBlocks(llvm::divideCeil(window, size) + 1) {}

  Value build() {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    bool isOfSequences = op.getKeyBegin() || op.getLags();
    Value keys = tensor::DimOp::create(b, op.getKey(), 2);
    OpFoldResult queries = tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 2), one = b.getIndexAttr(1);
    SmallVector<OpFoldResult> sizes = {isOfSequences ? tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 0) : one,
                                       one, queries, b.getIndexAttr(sinkBlocks + windowBlocks)};
    Value queryCount = getValueOrCreateConstantIndexOp(b, op.getLoc(), queries);
    Value init = tensor::EmptyOp::create(b, sizes, b.getI64Type());
    auto body = [&](OpBuilder &nested, Location loc, ValueRange) {
      ImplicitLocOpBuilder at(loc, nested);
      IndexBuilder index{at};
      auto loop = [&](int64_t number) -> Value { return linalg::IndexOp::create(at, number); };
      Value count = index.sub(keys, index.element(op.getLags(), loop(0), 0));
      Value own = index.add(index.sub(count, queryCount), loop(2));
      Value block = buildPlace(index, index.element(op.getKeyBegin(), loop(0), 0), own, loop(3));
      linalg::YieldOp::create(at, arith::IndexCastOp::create(at, at.getI64Type(), block).getResult());
    };
    SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(4)};
    SmallVector<utils::IteratorType> loops(4, utils::IteratorType::parallel);
    return linalg::GenericOp::create(b, init.getType(), ValueRange(), init, maps, loops, body).getResult(0);
  }

private:
  /// The block at a place of the list of the query whose own key is `own`, in a sequence whose keys begin at `begin`; or -1.
  Value buildPlace(IndexBuilder &index, Value begin, Value own, Value place) {
    Value none = index.constant(-1), sinkEnd = index.divideUp(index.add(begin, index.constant(sinks)), size);
    if (sinks == 0)
      sinkEnd = index.constant(0);
    Value sink = index.add(index.divide(begin, size), place);
    sink = index.choose(index.isLess(sink, sinkEnd), sink, none);
    Value back = index.sub(place, index.constant(sinkBlocks));
    Value recent = index.sub(index.divide(own, size), back);
    Value first = index.larger(index.sub(own, index.constant(window - 1)), index.constant(0));
    Value windowBegin = index.larger(index.divide(first, size), sinkEnd);
    recent = index.choose(index.isLess(recent, windowBegin), none, recent);
    return index.choose(index.isLess(place, index.constant(sinkBlocks)), sink, recent);
  }

  AttentionOp op;
  int64_t sinks, window, size, sinkBlocks, windowBlocks;
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
    bool isKnown = sinks >= 0 && sinks <= kMostListedKeys && window > 0 && window <= kMostListedKeys && block > 0 &&
                   block <= kMostListedKeys;
    if (isKnown)
      return success();
    return emitError(UnknownLoc::get(context))
           << "expected window and block to be 1 to " << kMostListedKeys << " and sinks 0 to " << kMostListedKeys
           << ", but got " << window.getValue() << ", " << block.getValue() << " and " << sinks.getValue();
  }

  void runOnOperation() override {
    getOperation().walk([&](AttentionOp op) {
      if (StringRef blocker = getBlocker(op, window); !blocker.empty()) {
        remark::missed(op.getLoc(), remark::RemarkOpts::name(kRemark).category(kPass))
            << ("attention stays dense: " + blocker).str();
        return;
      }
      Value lists = SinksAndWindow(op, sinks, window, block).build();
      AttentionPatternInterface patterns[] = {op.getPattern(), BlocksAttr::get(&getContext(), block, /*queries=*/1)};
      op.setPatternAttr(AllOfAttr::get(&getContext(), patterns));
      op.getPatternOperandsMutable().assign(lists);
      ++numAttentions;
      remark::passed(op.getLoc(), remark::RemarkOpts::name(kRemark).category(kPass))
          << llvm::formatv("queries see the first {0} keys and the last {1}, in blocks of {2}", sinks.getValue(),
                           window.getValue(), block.getValue())
                 .str();
    });
  }
};

} // namespace
} // namespace hone
