// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-shard-layers: which layers ranks share, and what of them each has.

#include "ShardedLayer.h"

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/Shards.h"
#include "hone/Transforms/Passes.h"
#include "hone/Transforms/ReturnedProducts.h"

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Remarks.h"

namespace hone {
#define GEN_PASS_DEF_SHARDLAYERS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::sharding {

namespace {

/// What of a layer is split: its name, where it lies, and its number.
struct Parts {
  StringRef name;     // "GQA groups"
  OpOperand *operand; // null: the result
  int64_t dim;
  int64_t count;
};

struct ShardLayers : impl::ShardLayersBase<ShardLayers> {
  using ShardLayersBase::ShardLayersBase;

  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override;
};

/// The layers of a module that can be split.
class LayerFinder {
public:
  LayerFinder(ModuleOp module, const SymbolTable &symbols, int64_t ranks)
      : shared(module), symbols(symbols), ranks(ranks) {}

  void find();
  ArrayRef<std::unique_ptr<ShardedLayer>> getLayers() const { return layers; }
  /// Why the first layer that cannot be split cannot be; empty where there is none.
  StringRef getBlocker() const { return firstBlocker; }

private:
  void add(Operation *op);
  std::string follow(Operation *op, Parts parts, ShardedLayer &layer);
  void refuse(Operation *op, Parts parts, StringRef blocker);

  prunable::SharedUses shared;
  const SymbolTable &symbols;
  int64_t ranks;
  SmallVector<std::unique_ptr<ShardedLayer>> layers;
  std::string firstBlocker;
};

} // namespace

LogicalResult ShardLayers::initialize(MLIRContext *context) {
  if (ranks < 2)
    return emitError(UnknownLoc::get(context))
           << "expected the number of ranks to be 2 or more, but got " << ranks.getValue();
  return success();
}

/// Of attention the KV heads, with the query heads that share them (GQA); else hidden channels, or rows of a product.
static Parts getParts(Operation *op) {
  if (std::optional<InnerGroups> groups = findInnerGroups(op)) {
    StringRef name = groups->kind == GroupKind::Heads ? "GQA groups" : "hidden channels";
    return {name, groups->operand, groups->dim, groups->count()};
  }
  auto rows = cast<RankedTensorType>(op->getResult(0).getType());
  auto weight = cast<RankedTensorType>(findProduct(op)->weight->get().getType());
  return {"outputs", nullptr, rows.getRank() - 1, weight.getDimSize(0)};
}

/// Why `op` cannot be split, or an empty string.
std::string LayerFinder::follow(Operation *op, Parts parts, ShardedLayer &layer) {
  if (ShapedType::isDynamic(parts.count))
    return "their number is not known";
  if (parts.count % ranks != 0)
    return ("they are " + Twine(parts.count) + ", which is no multiple of " + Twine(ranks) + " ranks").str();
  if (parts.operand)
    layer.mark(*parts.operand, parts.dim, parts.count);
  else
    layer.mark(op->getResult(0), parts.dim, parts.count);
  std::string blocker = layer.follow(symbols);
  for (StringAttr param : layer.listParams())
    if (blocker.empty() && llvm::any_of(layers, [&](const auto &other) { return other->splits(param); }))
      blocker = ("another layer splits " + param.getValue()).str();
  return blocker;
}

static remark::RemarkOpts getRemarkOptions() {
  return remark::RemarkOpts::name("Sharded").category("hone-shard-layers");
}

void LayerFinder::refuse(Operation *op, Parts parts, StringRef blocker) {
  remark::missed(op->getLoc(), getRemarkOptions()) << ("each rank has all of its " + parts.name + ": " + blocker).str();
  if (firstBlocker.empty())
    firstBlocker = (parts.name + ": " + blocker).str();
}

void LayerFinder::add(Operation *op) {
  if (llvm::any_of(layers, [&](const auto &layer) { return layer->touches(op); }))
    return;
  auto layer = std::make_unique<ShardedLayer>(shared, ranks);
  Parts parts = getParts(op);
  if (std::string blocker = follow(op, parts, *layer); !blocker.empty())
    return refuse(op, parts, blocker);
  remark::passed(op->getLoc(), getRemarkOptions())
      << ("each of " + Twine(ranks) + " ranks has " + Twine(parts.count / ranks) + " of its " + Twine(parts.count) +
          " " + parts.name)
             .str();
  layers.push_back(std::move(layer));
}

/// Products that are returned come last: they are split if nothing has split them.
void LayerFinder::find() {
  shared.module.walk([&](Operation *op) {
    if (findInnerGroups(op))
      add(op);
  });
  shared.module.walk([&](WeightedOpInterface op) {
    std::optional<WeightUse> product = findProduct(op);
    auto weight = product ? product->weight->get().getDefiningOp<GetParamOp>() : GetParamOp();
    if (weight && isReturnedProduct(weight))
      add(op);
  });
}

/// Gives products that share their weight with an embedding a copy of it: the embedding only looks rows up, of all tokens.
static void separateTables(ModuleOp module, SymbolTable &symbols, int64_t ranks) {
  for (auto &[op, reads] : findReads(module)) {
    auto param = cast<ParamOp>(op);
    if (!isTable(reads) || !isReturnedProduct(reads) || param.getTensorType().getDimSize(0) % ranks != 0)
      continue;
    auto copy = cast<ParamOp>(param->clone());
    copy.setSymName((param.getSymName() + ".outputs").str());
    symbols.insert(copy, std::next(param->getIterator()));
    for (GetParamOp read : reads) {
      OpBuilder b(read);
      auto other = GetParamOp::create(b, read.getLoc(), read.getType(), copy.getSymName());
      read.getResult().replaceUsesWithIf(other, [&](OpOperand &use) { return !isLookedUp(use); });
      for (GetParamOp one : {read, other})
        if (one->use_empty())
          one->erase();
    }
  }
}

void ShardLayers::runOnOperation() {
  ModuleOp module = getOperation();
  SymbolTable symbols(module);
  if (module.lookupSymbol(kGridName)) {
    module.emitError() << "expected a model that is not split over ranks yet";
    return signalPassFailure();
  }
  separateTables(module, symbols, ranks);
  LayerFinder finder(module, symbols, ranks);
  finder.find();
  if (finder.getLayers().empty()) {
    module.emitError() << "cannot split the model over " << ranks.getValue() << " ranks: "
                       << (finder.getBlocker().empty() ? "it has neither attention nor feed-forward blocks"
                                                       : finder.getBlocker());
    return signalPassFailure();
  }
  OpBuilder b(&getContext());
  symbols.insert(shard::GridOp::create(b, module.getLoc(), kGridName, ranks.getValue()), module.getBody()->begin());
  for (const std::unique_ptr<ShardedLayer> &layer : finder.getLayers()) {
    if (failed(layer->split(symbols)))
      return signalPassFailure();
    numParams += static_cast<int64_t>(layer->listParams().size());
  }
  prunable::updateFunctions(module);
  numLayers += static_cast<int64_t>(finder.getLayers().size());
}

} // namespace hone::sharding
