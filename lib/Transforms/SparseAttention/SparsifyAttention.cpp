// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-sparsify-attention: causal attention over lists of blocks of keys. What is listed is IR, the operand of `#hone.blocks`.

#include "BlockLists.h"
#include "PooledKeys.h"

#include "hone/Compress/AttentionThresholds.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/Report.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

namespace hone {
#define GEN_PASS_DEF_SPARSIFYATTENTION
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {
namespace {

constexpr llvm::StringLiteral kPass = "hone-sparsify-attention", kRemark = "SparseAttention";

/// Why no attention like this can read blocks alone, or an empty string.
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
    if (!(share >= 0 && share <= 1))
      return emitError(UnknownLoc::get(context))
             << "expected share to be 0 to 1, but got " << llvm::formatv("{0}", share.getValue()).str();
    auto isShare = [](double number) { return number >= 0 && number <= 1; };
    if (means && (!isShare(least) || !(similarity >= -1 && similarity <= 1)))
      return emitError(UnknownLoc::get(context))
             << llvm::formatv("expected least to be 0 to 1 and similarity -1 to 1, but got {0} and {1}",
                              least.getValue(), similarity.getValue())
                    .str();
    if (share > 0 && !means && block % kAntidiagonalStride != 0)
      return emitError(UnknownLoc::get(context)) << "expected block to be a multiple of " << kAntidiagonalStride
                                                 << " with share, but got " << block.getValue();
    return success();
  }

  void runOnOperation() override {
    if (!thresholds.empty() && failed(readThresholds()))
      return signalPassFailure();
    PooledKeys pooled(getOperation(), block, bounds);
    WalkResult result = getOperation().walk([&](AttentionOp op) -> WalkResult {
      StringRef blocker = findBlocker(op, pooled);
      if (!blocker.empty()) {
        remark::missed(op.getLoc(), remark::RemarkOpts::name(kRemark).category(kPass))
            << ("attention stays dense: " + blocker).str();
        return WalkResult::advance();
      }
      return sparsify(op, pooled);
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// Why attention stays as it is, or an empty string.
  StringRef findBlocker(AttentionOp op, PooledKeys &pooled) {
    StringRef blocker = getBlocker(op, window);
    bool selects = blocks > 0 || share > 0 || means;
    if (blocker.empty() && selects && isa<SlidingAttr>(op.getPattern()))
      return "it has a window of its own";
    if (blocker.empty() && blocks > 0)
      return pooled.getBlocker(op);
    if (blocker.empty() && !thresholds.empty() && !op.getKey().getDefiningOp<KvAppendOp>())
      return "thresholds are of keys that a state has";
    if (blocker.empty() && selects && op.getLags())
      return "its sequences have lengths of their own";
    return blocker;
  }

  LogicalResult sparsify(AttentionOp op, PooledKeys &pooled) {
    bool selectsForPrompts = share > 0 || means, selectsForQueries = blocks > 0;
    SparsifyAttentionOptions ofPrompts, ofQueries;
    ofPrompts.sinks = sinks, ofPrompts.window = window, ofPrompts.block = block;
    ofQueries = ofPrompts;
    ofPrompts.share = share, ofPrompts.means = means;
    ofQueries.blocks = blocks, ofQueries.bounds = bounds;
    Value lists;
    int64_t queries = 1;
    if (selectsForPrompts) {
      Value numbers = means ? buildThresholds(op) : Value();
      if (means && !numbers)
        return failure();
      BlockLists prompts(op, ofPrompts);
      lists = means ? prompts.buildMeans(numbers) : prompts.buildShares();
      queries = prompts.getQueries();
      if (selectsForQueries) {
        BlockLists single(op, ofQueries);
        single.selectForFew();
        lists = prompts.mergeLists(single.buildPooled(pooled.get(op)), lists);
        queries = 1;
      }
    } else {
      BlockLists single(op, ofQueries);
      lists = selectsForQueries ? single.buildPooled(pooled.get(op)) : single.build();
    }
    setLists(op, lists, block, queries);
    describe(op);
    return success();
  }

  LogicalResult readThresholds() {
    Location loc = getOperation().getLoc();
    auto file = compress::readAttentionThresholds(thresholds);
    if (failed(report(loc, file.status())))
      return failure();
    FailureOr<std::string> model = getFingerprint(getOperation());
    if (failed(model))
      return failure();
    if (file->model != *model)
      return emitError(loc) << thresholds << ": expected thresholds of the model with the fingerprint " << *model
                            << ", but got those of " << file->model;
    if (std::tuple(file->sinks, file->window, file->block) !=
        std::tuple(sinks.getValue(), window.getValue(), block.getValue()))
      return emitError(loc) << thresholds << ": was measured with " << file->sinks << " sinks, a window of "
                            << file->window << " and blocks of " << file->block << " keys, but got " << sinks.getValue()
                            << ", " << window.getValue() << " and " << block.getValue();
    ofSlots = std::move(file->rows);
    return success();
  }

  /// The operand of select_means: a row for all KV heads, or those of the file. Null after an error.
  Value buildThresholds(AttentionOp op) {
    std::vector<float> rows = {static_cast<float>(least), static_cast<float>(share), static_cast<float>(similarity)};
    if (!thresholds.empty()) {
      auto keys = op.getKey().getDefiningOp<KvAppendOp>();
      SlotAttr slot = StateOp::lookup(op, keys.getState().getType()).getSlotAttr(keys.getSlot());
      rows = ofSlots[slot.getName().str()];
      int64_t heads = op.getKey().getType().getDimSize(1);
      if (std::ssize(rows) != heads * SelectMeansOp::kThresholds) {
        op.emitError() << thresholds << ": expected thresholds of the " << heads << " KV heads of '" << slot.getName()
                       << "'";
        return {};
      }
    }
    ImplicitLocOpBuilder b(op.getLoc(), op);
    int64_t count = std::ssize(rows) / SelectMeansOp::kThresholds;
    auto type = RankedTensorType::get({count, SelectMeansOp::kThresholds}, b.getF32Type());
    return arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef<float>(rows)));
  }

  void describe(AttentionOp op) {
    ++numAttentions;
    std::string selected;
    if (!thresholds.empty())
      selected = ", and in prompts the blocks between them that each KV head needs by its thresholds for mean keys";
    else if (means)
      selected = llvm::formatv(", and in prompts the blocks between them that have {0:P0} of their attention by mean "
                               "keys, {1:P0} of all blocks at least, and those whose keys have a mean cosine below {2}",
                               share.getValue(), least.getValue(), similarity.getValue())
                     .str();
    else if (share > 0)
      selected = llvm::formatv(", and in prompts the blocks between them that have {0:P0} of their attention",
                               share.getValue())
                     .str();
    if (blocks > 0)
      selected +=
          llvm::formatv(", and{0} {1} blocks between them by {2} of their keys",
                        selected.empty() ? "" : " after prompts", blocks.getValue(), bounds ? "bounds" : "the mean")
              .str();
    remark::passed(op.getLoc(), remark::RemarkOpts::name(kRemark).category(kPass))
        << llvm::formatv("queries see the first {0} keys and the last {1}, in blocks of {2}", sinks.getValue(),
                         window.getValue(), block.getValue())
                   .str() +
               selected;
  }

  std::map<std::string, std::vector<float>> ofSlots; // thresholds
};

} // namespace
} // namespace hone
