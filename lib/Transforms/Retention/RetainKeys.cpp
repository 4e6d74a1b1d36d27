// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-retain-keys: how many keys each layer keeps, and what a session needs to choose them.

#include "Importance.h"

#include "hone/Compress/KeyBudgets.h"
#include "hone/Compress/KeyImportance.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace hone {
#define GEN_PASS_DEF_RETAINKEYS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::retention {
namespace {

constexpr llvm::StringLiteral kForward = "forward", kPass = "hone-retain-keys";
/// Neighbours whose mean mass counts for SnapKV, the kernel of its pooling (Li et al., 2024, section 4).
constexpr int64_t kPooledNeighbours = 5;

struct RetainKeys : impl::RetainKeysBase<RetainKeys> {
  using RetainKeysBase::RetainKeysBase;

  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override {
    if (failed(retain()))
      signalPassFailure();
  }

private:
  LogicalResult retain();
  LogicalResult checkLayer(AttentionOp op, llvm::DenseSet<int64_t> &used) const;
  FailureOr<SmallVector<AttentionOp>> findLayers(func::FuncOp forward) const;
  FailureOr<SmallVector<int64_t>> chooseBudgets(ArrayRef<AttentionOp> scored) const;
  void describeLayer(AttentionOp op, const LayerRetention &layer);
  int64_t getBlock() const { return getEvictedBlock(budget); }
};

} // namespace

LogicalResult RetainKeys::initialize(MLIRContext *context) {
  Location loc = UnknownLoc::get(context);
  if (policy != "snapkv" && policy != "h2o" && policy != "prefix")
    return emitError(loc) << "unsupported policy '" << policy.getValue() << "'; supported: snapkv, h2o, prefix";
  if (sinks < 0 || recent < 1 || budget < 1)
    return emitError(loc) << "expected budget and recent to be 1 or more and sinks 0 or more, but got "
                          << budget.getValue() << ", " << recent.getValue() << " and " << sinks.getValue();
  int64_t least = sinks + recent + getBlock();
  if (budget < least)
    return emitError(loc) << "expected budget to be at least " << least << ", for " << sinks.getValue() << " sinks, "
                          << recent.getValue() << " recent keys and the " << getBlock()
                          << " that are evicted at once, but got " << budget.getValue();
  return success();
}

static LogicalResult refuse(Operation *op, const Twine &reason) {
  remark::missed(op->getLoc(), remark::RemarkOpts::name("Retention").category(kPass)) << reason.str();
  return op->emitError() << "cannot bound the keys that a session keeps: " << reason;
}

/// Whether `use` reads how large a slot is alone, for nothing.
static bool isUnused(OpOperand &use) {
  return (isa<tensor::DimOp>(use.getOwner()) || onnxir::isNode(use.getOwner(), "Shape")) && use.getOwner()->use_empty();
}

/// Whether attention alone reads what the append gives.
static LogicalResult checkUses(KvAppendOp append, AttentionOp op) {
  for (OpOperand &use : append.getAll().getUses())
    if (use.getOwner() != op && !isUnused(use))
      return refuse(use.getOwner(), use.getOwner()->getName().getStringRef() +
                                        " reads a slot of the state, which does not know that keys are evicted");
  return success();
}

LogicalResult RetainKeys::checkLayer(AttentionOp op, llvm::DenseSet<int64_t> &used) const {
  auto keys = op.getKey().getDefiningOp<KvAppendOp>(), values = op.getValue().getDefiningOp<KvAppendOp>();
  if (!keys || !values || keys->getBlock() != op->getBlock() || !isa<func::FuncOp>(op->getParentOp()))
    return refuse(op, "an attention does not read what it appends to the state");
  if (!isa<CausalAttr, SlidingAttr>(op.getPattern())) {
    std::string pattern;
    llvm::raw_string_ostream(pattern) << op.getPattern();
    return refuse(op, "unsupported pattern " + pattern + " of an attention; supported: causal and sliding");
  }
  for (auto [operand, name] : {std::pair(Value(op.getBias()), "bias"), std::pair(Value(op.getAlibi()), "alibi"),
                               std::pair(Value(op.getKeyEnd()), "key_end"), std::pair(Value(op.getLags()), "lags"),
                               std::pair(Value(op.getKeyPositions()), "key_positions")})
    if (operand)
      return refuse(op, Twine("the ") + name + " of an attention goes by the number of a key");
  ArrayRef<int64_t> shape = op.getQuery().getType().getShape();
  if (ShapedType::isDynamic(shape[1]) || ShapedType::isDynamic(shape[3]) || op.getKey().getType().isDynamicDim(3))
    return refuse(op, "the number of heads of an attention or their size is not known");
  for (KvAppendOp append : {keys, values}) {
    StateOp state = StateOp::lookup(op, append.getState().getType());
    if (state.getSlotAttr(append.getSlot()).getAxis() != 2)
      return refuse(op, "the keys of an attention are not kept by sequence, head and position");
    used.insert(append.getSlot());
    if (failed(checkUses(append, op)))
      return failure();
  }
  return success();
}

FailureOr<SmallVector<AttentionOp>> RetainKeys::findLayers(func::FuncOp forward) const {
  SmallVector<AttentionOp> layers;
  llvm::DenseSet<int64_t> used;
  WalkResult result = forward.walk([&](AttentionOp op) -> WalkResult {
    bool isOverState = isa_and_nonnull<KvAppendOp, KvViewOp>(op.getKey().getDefiningOp());
    if (!isOverState && isa<FullAttr>(op.getPattern())) // over what an encoder gave
      return WalkResult::advance();
    layers.push_back(op);
    return checkLayer(op, used);
  });
  if (result.wasInterrupted())
    return failure();
  if (layers.empty())
    return refuse(forward, "no attention reads the state");
  StateOp state = StateOp::lookup(forward, cast<KvType>(forward.getArgumentTypes().back()));
  for (auto [number, slot] : llvm::enumerate(state.getSlots().getAsRange<SlotAttr>()))
    if (slot.getAxis() && !used.contains(number))
      return refuse(forward, "slot '" + slot.getName() + "' of the state grows, and no attention reads it");
  return layers;
}

static StringRef getKeysName(AttentionOp op) {
  auto keys = op.getKey().getDefiningOp<KvAppendOp>();
  return StateOp::lookup(op, keys.getState().getType()).getSlotAttr(keys.getSlot()).getName();
}

/// How many keys causal attentions keep.
FailureOr<SmallVector<int64_t>> RetainKeys::chooseBudgets(ArrayRef<AttentionOp> scored) const {
  if (importance.empty() || scored.empty())
    return SmallVector<int64_t>(scored.size(), budget);
  Location loc = scored.front()->getParentOfType<ModuleOp>().getLoc();
  auto file = compress::readKeyImportance(importance);
  if (failed(report(loc, file.status())))
    return failure();
  FailureOr<std::string> model = getFingerprint(scored.front()->getParentOfType<ModuleOp>());
  if (failed(model))
    return failure();
  if (file->model != *model)
    return emitError(loc) << importance << ": expected the importance of keys of the model with the fingerprint "
                          << *model << ", but got that of " << file->model;
  std::vector<std::vector<double>> mass;
  for (AttentionOp op : scored) {
    auto found = file->mass.find(getKeysName(op).str());
    if (found == file->mass.end())
      return emitError(op.getLoc()) << importance << ": has no importance of the keys '" << getKeysName(op) << "'";
    mass.push_back(found->second);
  }
  auto budgets = compress::searchKeyBudgets(mass, budget, sinks + recent + getBlock());
  if (!budgets.ok())
    return emitError(loc) << importance << ": " << std::string(budgets.status().message());
  compress::KeyBudgets uniform = compress::shareOf(mass, std::vector(mass.size(), budget.getValue()));
  remark::analysis(loc, remark::RemarkOpts::name("Budgets").category(kPass))
      << llvm::formatv(
             "layers keep a share of {0:F4} of their attention at least and {1:F4} on average; with one budget "
             "for all {2:F4} and {3:F4}",
             budgets->share, budgets->meanShare, uniform.share, uniform.meanShare)
             .str();
  return SmallVector<int64_t>(ArrayRef<int64_t>(budgets->budgets));
}

/// A slot for the queries of an attention beside its keys.
static int64_t addQueries(AttentionOp op) {
  auto keys = op.getKey().getDefiningOp<KvAppendOp>();
  StateOp state = StateOp::lookup(op, keys.getState().getType());
  SmallVector<Attribute> all(state.getSlots().getValue());
  std::string name = (state.getSlotAttr(keys.getSlot()).getName() + ".queries").str();
  while (llvm::any_of(all, [&](Attribute slot) { return cast<SlotAttr>(slot).getName() == name; }))
    name += "_";
  RankedTensorType query = op.getQuery().getType();
  SmallVector<int64_t> shape(query.getShape());
  shape[0] = state.getSlotAttr(keys.getSlot()).getType().getDimSize(0);
  shape[2] = ShapedType::kDynamic;
  auto type = RankedTensorType::get(shape, query.getElementType());
  all.push_back(SlotAttr::get(op.getContext(), name, type, /*axis=*/2));
  state.setSlotsAttr(ArrayAttr::get(op.getContext(), all));
  // The last append before the attention, which what comes after it goes on from.
  Value last;
  for (auto append : op->getBlock()->getOps<KvAppendOp>())
    if (append->isBeforeInBlock(op))
      last = append.getNext();
  OpBuilder b(op);
  auto append = KvAppendOp::create(b, op.getLoc(), last.getType(), type, last, op.getQuery(),
                                   static_cast<int64_t>(all.size() - 1));
  last.replaceUsesWithIf(append.getNext(), [&](OpOperand &use) {
    Operation *user = op->getBlock()->findAncestorOpInBlock(*use.getOwner());
    return append->isBeforeInBlock(user);
  });
  return static_cast<int64_t>(all.size() - 1);
}

/// @forward takes one sequence: those of a batch would keep different keys.
static void checkSequences(func::FuncOp forward) {
  ImplicitLocOpBuilder b(forward.getLoc(), forward.getContext());
  b.setInsertionPointToStart(&forward.getBody().front());
  Value batch = tensor::DimOp::create(b, forward.getArgument(0), 0), one = arith::ConstantIndexOp::create(b, 1);
  Value isOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, batch, one);
  hrt::CheckOp::create(b, isOne, "expected one sequence, as a budget bounds its keys, but got {}", batch);
}

void RetainKeys::describeLayer(AttentionOp op, const LayerRetention &layer) {
  ++numLayers;
  remark::passed(op.getLoc(), remark::RemarkOpts::name("Retention").category(kPass))
      << llvm::formatv("a session keeps {0} keys, of which the first {1} and the last {2} always", layer.budget,
                       layer.sinks, layer.recent)
             .str();
}

LogicalResult RetainKeys::retain() {
  auto forward = getOperation().lookupSymbol<func::FuncOp>(kForward);
  bool isOverTokens = forward && !forward.isExternal() && forward.getNumArguments() >= 2 &&
                      isa<KvType>(forward.getArgumentTypes().back());
  if (!isOverTokens)
    return getOperation().emitError() << "cannot bound the keys that a session keeps: the model has no entry '"
                                      << kForward << "' of tokens with a state";
  if (getOperation().lookupSymbol(kImportance))
    return getOperation().emitError() << "cannot make an entry '" << kImportance << "': the model has one";
  FailureOr<SmallVector<AttentionOp>> layers = findLayers(forward);
  if (failed(layers))
    return failure();
  SmallVector<AttentionOp> causal =
      llvm::filter_to_vector(*layers, [](AttentionOp op) { return isa<CausalAttr>(op.getPattern()); });
  FailureOr<SmallVector<int64_t>> budgets = chooseBudgets(causal);
  if (failed(budgets))
    return failure();
  Retention retention;
  retention.block = getBlock();
  retention.pooling = policy == "snapkv" ? kPooledNeighbours : 1;
  retention.accumulates = policy != "snapkv";
  retention.sharesHeads = policy == "prefix";
  SmallVector<ScoredLayer> scored;
  for (AttentionOp op : *layers) {
    LayerRetention layer;
    layer.keys = op.getKey().getDefiningOp<KvAppendOp>().getSlot();
    layer.values = op.getValue().getDefiningOp<KvAppendOp>().getSlot();
    if (auto sliding = dyn_cast<SlidingAttr>(op.getPattern())) {
      layer.recent = sliding.getWindow();
      layer.budget = layer.recent + retention.block;
    } else {
      layer.budget = (*budgets)[scored.size()];
      layer.sinks = sinks;
      layer.recent = recent;
      layer.queries = addQueries(op);
      scored.push_back({op, layer});
    }
    describeLayer(op, layer);
    retention.layers.push_back(layer);
  }
  checkSequences(forward);
  if (!scored.empty())
    addImportance(forward, scored);
  StateOp state = StateOp::lookup(forward, cast<KvType>(forward.getArgumentTypes().back()));
  state->setAttr(kRetentionAttrName, retention.toAttribute(&getContext()));
  return success();
}

} // namespace hone::retention
