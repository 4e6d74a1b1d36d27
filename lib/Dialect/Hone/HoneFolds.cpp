//===- HoneFolds.cpp - folds and canonical forms ----------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every one is exact: the result is bit-equal.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Verify.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace hone;

//===- State ------------------------------------------------------------------------------------------------------===//

/// The state that `state` extends by appends.
static Value skipAppends(Value state) {
  while (auto append = state.getDefiningOp<KvAppendOp>())
    state = append.getState();
  return state;
}

/// Lengths and padding of a state, and the logits to keep do not change in a call: read them from the state that the call began with.
template <typename Op>
static OpFoldResult readFromFirstState(Op op) {
  Value first = skipAppends(op.getState());
  if (first == op.getState())
    return {};
  op.getStateMutable().assign(first);
  return op.getResult();
}

OpFoldResult KvLengthOp::fold(FoldAdaptor) { return readFromFirstState(*this); }

OpFoldResult KvLagOp::fold(FoldAdaptor) { return readFromFirstState(*this); }

OpFoldResult KvPaddingOp::fold(FoldAdaptor) { return readFromFirstState(*this); }

OpFoldResult LogitsToKeepOp::fold(FoldAdaptor) { return readFromFirstState(*this); }

/// A slot that was just appended to is what the append returned; appends to other slots do not matter.
OpFoldResult KvViewOp::fold(FoldAdaptor) {
  auto append = getState().getDefiningOp<KvAppendOp>();
  if (!append)
    return {};
  if (append.getSlot() == getSlot())
    return append.getAll().getType() == getType() ? append.getAll() : Value();
  getStateMutable().assign(append.getState());
  return getResult();
}

//===- attention --------------------------------------------------------------------------------------------------===//

namespace {

/// An operand whose every element is 0 adds nothing: bias, alibi, and key_begin, which then shows every key.
struct DropZeroOperands : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  static bool isZero(Value value) {
    return value && (matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()));
  }

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    MutableOperandRange operands[] = {op.getBiasMutable(), op.getAlibiMutable(), op.getKeyBeginMutable()};
    for (MutableOperandRange &operand : operands)
      if (!operand.empty() && isZero(operand[0].get())) {
        rewriter.modifyOpInPlace(op, [&] { operand.clear(); });
        return success();
      }
    return rewriter.notifyMatchFailure(op, "no optional operand is known to be 0");
  }
};

/// A window at least as long as the keys hides none of them, where positions are their numbers.
struct DropWideWindow : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    auto sliding = dyn_cast<SlidingAttr>(op.getPattern());
    int64_t keys = shapeOf(op.getKey())[2];
    if (!sliding || op.getKeyPositions() || ShapedType::isDynamic(keys) || sliding.getWindow() < keys)
      return rewriter.notifyMatchFailure(op, "no window that is known to hold every key");
    rewriter.modifyOpInPlace(op, [&] { op.setPatternAttr(CausalAttr::get(op.getContext())); });
    return success();
  }
};

} // namespace

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DropZeroOperands, DropWideWindow>(context);
}
