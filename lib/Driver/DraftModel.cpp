// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of a pair of models, and the symbols of one in the module of the other.

#include "DraftModel.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/text/tokenizer.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/DenseSet.h"
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

/// The names that are referred to from `op`.
static SmallVector<StringAttr> listReferences(Operation *op) {
  SmallVector<StringAttr> names;
  AttrTypeWalker walker;
  walker.addWalk([&](SymbolRefAttr reference) { names.push_back(reference.getRootReference()); });
  op->walk([&](Operation *inner) {
    walker.walk(inner->getAttrDictionary());
    for (Type type : llvm::concat<const Type>(inner->getOperandTypes(), inner->getResultTypes()))
      walker.walk(type);
  });
  return names;
}

void keepForward(ModuleOp draft) {
  SymbolTable symbols(draft);
  DenseSet<Operation *> needed{getForward(draft)};
  SmallVector<Operation *> open(needed.begin(), needed.end());
  while (!open.empty())
    for (StringAttr name : listReferences(open.pop_back_val()))
      if (Operation *other = symbols.lookup(name); other && needed.insert(other).second)
        open.push_back(other);
  for (Operation &op : llvm::make_early_inc_range(*draft.getBody()))
    if (!needed.contains(&op))
      op.erase();
}

namespace {

/// Names for the symbols of a draft model in the module of its target.
class DraftNames {
public:
  explicit DraftNames(ModuleOp target) : symbols(target) {}

  /// Whether the target has the same, under the same name.
  bool isShared(Operation &op) const {
    auto param = dyn_cast<ParamOp>(op);
    auto other = param ? symbols.lookup<ParamOp>(param.getSymName()) : ParamOp();
    return other && other->getAttrDictionary() == param->getAttrDictionary();
  }

  /// A name that is free.
  void choose(Operation &op) {
    StringAttr name = SymbolTable::getSymbolName(&op);
    std::string free = getWanted(op, name), wanted = free;
    for (unsigned number = 1; symbols.lookup(free); ++number)
      free = wanted + "." + std::to_string(number);
    names[name] = StringAttr::get(op.getContext(), free);
  }

  /// Gives the operations of `draft` those names.
  void apply(ModuleOp draft) const {
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](FlatSymbolRefAttr reference) -> std::optional<Attribute> {
      auto found = names.find(reference.getAttr());
      return found == names.end() ? std::nullopt : std::optional<Attribute>(FlatSymbolRefAttr::get(found->second));
    });
    replacer.recursivelyReplaceElementsIn(draft, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
    for (Operation &op : *draft.getBody())
      SymbolTable::setSymbolName(&op, names.at(SymbolTable::getSymbolName(&op)));
  }

private:
  static std::string getWanted(Operation &op, StringRef name) {
    if (name == kForward)
      return kDraft.str();
    if (name == kVerify)
      return kDraftVerify.str();
    return (isa<StateOp>(op) ? "draft_" : "draft.") + name.str();
  }

  SymbolTable symbols;
  llvm::DenseMap<StringAttr, StringAttr> names;
};

} // namespace

LogicalResult addDraft(ModuleOp target, ModuleOp draft) {
  for (StringRef taken : {kDraft, kDraftVerify})
    if (target.lookupSymbol(taken))
      return target.emitError() << "expected a model without a symbol @" << taken << " for --draft";
  DraftNames names(target);
  for (Operation &op : llvm::make_early_inc_range(*draft.getBody()))
    if (names.isShared(op))
      op.erase();
    else
      names.choose(op);
  names.apply(draft);
  target.getBody()->getOperations().splice(target.getBody()->end(), draft.getBody()->getOperations());
  return success();
}

} // namespace hone
