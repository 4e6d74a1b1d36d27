// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of a pair of models, one of which goes into the module of the other.

#include "DraftModel.h"

#include "ModelSymbols.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/text/tokenizer.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace hone {

static constexpr llvm::StringLiteral kForward = "forward", kDraft = "draft";
static constexpr llvm::StringLiteral kVerify = "verify", kDraftVerify = "draft_verify"; // of trees

CompileOptions getDraftOptions(const CompileOptions &options) {
  CompileOptions draft;
  draft.input = options.draft.isSelf() ? options.input : options.draft.source;
  draft.reading = options.reading;
  draft.target = options.target;
  draft.storage = options.storage;
  draft.state = options.state;
  draft.speculation = options.speculation;
  draft.outputs.path = options.outputs.path;
  if (!options.draft.isSelf())
    return draft;
  bool isSparse = options.draft.getForm() == "2:4";
  (isSparse ? draft.compression.pruning.pattern : draft.compression.quantization.type) = options.draft.getForm().str();
  draft.compression.statistics = options.compression.statistics;
  return draft;
}

/// Where what is said of the model of a file goes.
static Location locate(const std::string &path, ModuleOp module) {
  return FileLineColLoc::get(module.getContext(), llvm::sys::path::filename(path), 0, 0);
}

static func::FuncOp getForward(ModuleOp module) { return module.lookupSymbol<func::FuncOp>(kForward); }

static LogicalResult checkDecoder(ModuleOp module, Location loc) {
  if (getForward(module))
    return success();
  return emitError(loc) << "expected a decoder with keys and values of the past as inputs and outputs for --draft, "
                           "but there is none";
}

/// The draft model keeps a state that grows alone, which returns to any length.
static LogicalResult checkState(ModuleOp draft, Location loc) {
  func::FuncOp forward = getForward(draft);
  for (auto kept : llvm::make_filter_range(forward.getArgumentTypes(), llvm::IsaPred<KvType>)) {
    StateOp state = StateOp::lookup(forward, cast<KvType>(kept));
    for (SlotAttr slot : state.getSlots().getAsRange<SlotAttr>())
      if (!slot.getAxis())
        return emitError(loc) << "a draft model takes back tokens, but state '" << slot.getName()
                              << "' has no history to return to";
  }
  return success();
}

static LogicalResult checkContext(ModuleOp draft, Location loc) {
  func::FuncOp forward = getForward(draft);
  for (unsigned i = 0, count = forward.getNumArguments(); i < count; ++i) {
    if (!forward.getArgAttr(i, HoneDialect::getContextAttrName()))
      continue;
    auto name = forward.getArgAttrOfType<StringAttr>(i, onnxir::kNameAttr);
    return emitError(loc) << "expected a draft model without context, but it reads '"
                          << (name ? name.getValue() : "input" + std::to_string(i)) << "'";
  }
  return success();
}

/// The last size of the logits, or nothing where each call decides it.
static std::optional<int64_t> getVocabulary(ModuleOp module) {
  auto logits = dyn_cast<RankedTensorType>(getForward(module).getResultTypes().front());
  bool isFixed = logits && logits.getRank() > 0 && !logits.isDynamicDim(logits.getRank() - 1);
  return isFixed ? std::optional(logits.getShape().back()) : std::nullopt;
}

static LogicalResult checkVocabulary(const CompileOptions &options, ModuleOp target, ModuleOp draft, Location loc) {
  std::optional<int64_t> expected = getVocabulary(target), got = getVocabulary(draft);
  if (!expected || !got || *expected == *got)
    return success();
  return emitError(loc) << "expected the draft model to have the vocabulary of "
                        << llvm::sys::path::filename(options.input) << ", " << *expected << " tokens, but got " << *got;
}

static LogicalResult checkTokenizer(const CompileOptions &options, ModuleOp target, Location loc) {
  if (options.draft.tokenizer.empty())
    return success();
  auto ofTarget = text::Tokenizer::fromFile(options.outputs.tokenizer);
  if (!ofTarget.ok())
    return report(loc, ofTarget.status());
  auto ofDraft = text::Tokenizer::fromFile(options.draft.tokenizer);
  if (!ofDraft.ok())
    return report(loc, ofDraft.status());
  std::optional<int64_t> tokens = getVocabulary(target);
  if (!tokens)
    return emitError(loc) << "expected a model with a fixed vocabulary for --draft-tokenizer";
  std::optional<text::TokenDifference> other = text::findDifference(*ofTarget, *ofDraft, *tokens);
  if (!other)
    return success();
  return emitError(loc) << "expected the draft model to have the tokenizer " << options.outputs.tokenizer
                        << ", where token " << other->id << " is " << other->expected << ", but in "
                        << options.draft.tokenizer << " it is " << other->got;
}

LogicalResult checkDraft(const CompileOptions &options, ModuleOp target, ModuleOp draft) {
  Location loc = locate(options.draft.isSelf() ? options.input : options.draft.source, draft);
  if (failed(checkDecoder(target, locate(options.input, target))) || failed(checkDecoder(draft, loc)) ||
      failed(checkState(draft, loc)) || failed(checkContext(draft, loc)) ||
      failed(checkVocabulary(options, target, draft, loc)))
    return failure();
  return checkTokenizer(options, target, loc);
}

void keepForward(ModuleOp draft) { keepFunction(draft, kForward); }

LogicalResult addDraft(ModuleOp target, ModuleOp draft) {
  for (StringRef taken : {kDraft, kDraftVerify})
    if (target.lookupSymbol(taken))
      return target.emitError() << "expected a model without a symbol @" << taken << " for --draft";
  moveSymbols(target, draft, kDraft, {{kForward, kDraft}, {kVerify, kDraftVerify}}, /*sharesParameters=*/true);
  return success();
}

} // namespace hone
