// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-prune-structured: how many groups go, which ones, and error compensation.

#include "ExpertChannels.h"

#include "hone/Compress/Structured.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/ParameterActions.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Transforms/GroupAnalysis.h"
#include "hone/Transforms/MeasuredInputs.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>

namespace hone {
#define GEN_PASS_DEF_PRUNESTRUCTURED
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::prune {

using namespace prunable;

/// Rounds in which OBS removes groups; what they cost is computed anew for each.
static constexpr int64_t kRounds = 16;

namespace {

/// The groups of one layer: its hidden channels, those of its experts, or its GQA groups.
struct Layer {
  Operation *op;
  int64_t groups;
  std::unique_ptr<GroupAnalysis> analysis; // null where the layer has experts
  ParamOp consumer;                        // its columns are of the groups; null where there is a blocker
  std::string blocker;
  std::unique_ptr<ExpertBlock> experts = nullptr;
};

/// All layers with groups of one kind.
struct Kind {
  StringRef name, plural; // "channels", "GQA groups"
  SmallVector<Layer> layers;
  int64_t removed = 0;  // of each layer
  int64_t elements = 0; // of parameters, for one group of all layers

  int64_t groups() const { return layers.empty() ? 0 : layers.front().groups; }
};

struct PruneStructured : impl::PruneStructuredBase<PruneStructured> {
  using PruneStructuredBase::PruneStructuredBase;

  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override;

private:
  bool needsStatistics() const { return method != "magnitude"; }
  remark::RemarkOpts options() const { return remark::RemarkOpts::name("Pruned").category("hone-prune-structured"); }
  void findLayers(const SharedUses &shared, Kind &channelKind, Kind &headKind);
  void findExperts(const SharedUses &shared, const SymbolTable &symbols, Kind &kind);
  void findConsumer(Layer &layer, const SymbolTable &symbols, const MeasuredInputs &inputs) const;
  void refuseKind(Kind &kind);
  LogicalResult chooseNumbers(Kind &channelKind, Kind &expertKind, Kind &headKind);
  FailureOr<SmallVector<bool>> chooseGroups(Layer &layer, int64_t removed, const SymbolTable &symbols,
                                            MeasuredInputs &inputs) const;
  FailureOr<std::vector<int64_t>> chooseMeasured(Layer &layer, int64_t removed, std::vector<float> &elements,
                                                 MeasuredInputs &inputs) const;
  LogicalResult pruneLayer(Layer &layer, int64_t removed, const SharedUses &shared, const SymbolTable &symbols,
                           MeasuredInputs &inputs);
  LogicalResult prune(Kind &kind, const SharedUses &shared, const SymbolTable &symbols, MeasuredInputs &inputs);
};

} // namespace

LogicalResult PruneStructured::initialize(MLIRContext *context) {
  auto error = [&] { return emitError(UnknownLoc::get(context)); };
  if (!llvm::is_contained({"magnitude", "energy", "obs"}, method.getValue()))
    return error() << "unsupported method '" << method << "' to prune groups; supported: magnitude, energy, obs";
  if (!(sparsity >= 0 && sparsity < 1))
    return error() << "expected the sparsity to be at least 0 and less than 1, but got "
                   << llvm::formatv("{0:F4}", sparsity.getValue()).str();
  if (multiple < 1)
    return error() << "expected the multiple to be 1 or more, but got " << multiple.getValue();
  if (needsStatistics() && statistics.empty())
    return error() << "expected a file of statistics for method '" << method << "'";
  return success();
}

//===- Layers -----------------------------------------------------------------------------------------------------===//

static SmallVector<int32_t, 0> enumerate(int64_t count) {
  SmallVector<int32_t, 0> groups(count);
  std::iota(groups.begin(), groups.end(), 0);
  return groups;
}

/// Marks the groups of attention or of a feed-forward block where it reads them; their number.
static int64_t markGroups(Operation *op, GroupAnalysis &analysis) {
  if (isAttentionNode(op))
    return markHeads(op, analysis);
  InnerGroups groups = *findInnerGroups(op);
  if (int64_t count = groups.count(); !ShapedType::isDynamic(count))
    analysis.mark(*groups.operand, groups.dim, enumerate(count));
  else if (groups.kind == GroupKind::Heads)
    analysis.refuse("the number of its heads is not known");
  else
    analysis.refuse("the number of its hidden channels is not known");
  return groups.count();
}

void PruneStructured::findLayers(const SharedUses &shared, Kind &channelKind, Kind &headKind) {
  auto isKnown = [](const Kind &kind, Operation *op) {
    return llvm::any_of(kind.layers, [&](const Layer &layer) { return layer.analysis->touched.contains(op); });
  };
  getOperation()->walk([&](Operation *op) {
    std::optional<InnerGroups> inner = findInnerGroups(op);
    if (!inner && !isAttentionNode(op))
      return;
    Kind &kind = inner && inner->kind == GroupKind::Channels ? channelKind : headKind;
    if (isKnown(kind, op))
      return;
    auto analysis = std::make_unique<GroupAnalysis>(shared);
    int64_t groups = markGroups(op, *analysis);
    analysis->run();
    kind.layers.push_back({op, groups, std::move(analysis), {}, {}});
  });
}

void PruneStructured::findExperts(const SharedUses &shared, const SymbolTable &symbols, Kind &kind) {
  getOperation()->walk([&](MoeOp moe) {
    if (llvm::any_of(kind.layers, [&](const Layer &layer) { return llvm::is_contained(layer.experts->ops, moe); }))
      return;
    auto block = std::make_unique<ExpertBlock>(moe, shared, symbols);
    kind.layers.push_back({moe, moe.getHiddenSize(), nullptr, block->down, block->blocker, std::move(block)});
  });
}

void PruneStructured::findConsumer(Layer &layer, const SymbolTable &symbols, const MeasuredInputs &inputs) const {
  if (layer.experts) {
    if (layer.blocker.empty() && needsStatistics() && inputs.countExperts(layer.consumer) == 0)
      layer.blocker = ("nothing was measured of the inputs of " + layer.consumer.getSymName()).str();
    return;
  }
  layer.blocker = layer.analysis->getBlocker().str();
  for (const auto &[name, groups] : layer.analysis->params) {
    auto param = symbols.lookup<ParamOp>(name);
    std::string blocker = getCutBlocker(param);
    bool isMatrix = param.getTensorType().getRank() == 2;
    if (isMatrix && groups.axis == 1 && layer.consumer)
      blocker = "more than one product sums over its groups";
    else if (isMatrix && groups.axis == 1)
      layer.consumer = param;
    if (layer.blocker.empty())
      layer.blocker = blocker;
  }
  if (layer.blocker.empty() && !layer.consumer)
    layer.blocker = "no product with a parameter sums over its groups";
  if (layer.blocker.empty() && needsStatistics() && !inputs.has(layer.consumer))
    layer.blocker = ("nothing was measured of the inputs of " + layer.consumer.getSymName()).str();
}

/// Widths are uniform: one layer that keeps its groups keeps those of all.
void PruneStructured::refuseKind(Kind &kind) {
  bool isRefused = false;
  for (Layer &layer : kind.layers) {
    if (layer.blocker.empty() && layer.groups != kind.groups())
      layer.blocker =
          ("it has " + Twine(layer.groups) + " " + kind.plural + ", and others have " + Twine(kind.groups())).str();
    if (!layer.blocker.empty())
      remark::missed(layer.op->getLoc(), options())
          << ("its " + kind.plural + " stay, and with them those of all layers: " + layer.blocker).str();
    isRefused |= !layer.blocker.empty();
  }
  if (isRefused)
    kind.layers.clear();
}

//===- Numbers ----------------------------------------------------------------------------------------------------===//

/// The elements of parameters that are of group 0 of the layers; all groups have as many.
static int64_t countGroupElements(const Kind &kind, const SymbolTable &symbols) {
  int64_t count = 0;
  for (const Layer &layer : kind.layers)
    if (layer.experts)
      count += layer.experts->countElements();
    else
      for (const auto &[name, groups] : layer.analysis->params) {
        RankedTensorType type = symbols.lookup<ParamOp>(name).getTensorType();
        count += type.getNumElements() / type.getDimSize(groups.axis) * llvm::count(groups.groupOf, 0);
      }
  return count;
}

LogicalResult PruneStructured::chooseNumbers(Kind &channelKind, Kind &expertKind, Kind &headKind) {
  if (sparsity == 0)
    return success();
  SharedUses shared(getOperation());
  SymbolTable symbols(getOperation());
  Kind *kinds[] = {&headKind, &channelKind, &expertKind};
  for (Kind *kind : kinds)
    kind->elements = countGroupElements(*kind, symbols);
  int64_t all = countElements(shared), inHeads = headKind.elements * headKind.groups(),
          inChannels = channelKind.elements * channelKind.groups() + expertKind.elements * expertKind.groups();
  double wanted = sparsity * static_cast<double>(all), share = wanted / static_cast<double>(inHeads + inChannels);
  if (!(share < 1))
    return emitError(getOperation().getLoc())
           << llvm::formatv("cannot remove {0:F1} % of the parameters: those of groups that can go are {1:F1} %",
                            100 * sparsity,
                            100.0 * static_cast<double>(inHeads + inChannels) / static_cast<double>(all))
                  .str();
  // The nearest number of groups, of two the smaller: fewer heads cost more than fewer channels.
  headKind.removed =
      std::max<int64_t>(std::min(static_cast<int64_t>(std::ceil(share * static_cast<double>(headKind.groups()) - 0.5)),
                                 headKind.groups() - 1),
                        0);
  double rest = wanted - static_cast<double>(headKind.removed * headKind.elements);
  for (Kind *kind : {&channelKind, &expertKind}) {
    if (kind->layers.empty())
      continue;
    double part = static_cast<double>(kind->elements * kind->groups()) / static_cast<double>(inChannels);
    double kept = static_cast<double>(kind->groups()) - part * rest / static_cast<double>(kind->elements);
    int64_t rounded = std::max(std::llround(kept / static_cast<double>(multiple)), 1LL) * multiple;
    kind->removed = std::max<int64_t>(kind->groups() - rounded, 0);
  }
  int64_t gone = 0;
  for (Kind *kind : kinds) {
    gone += kind->removed * kind->elements;
    if (!kind->layers.empty())
      remark::analysis(getOperation().getLoc(), options())
          << llvm::formatv("{0} of {1} {2} go from each of {3} layers", kind->removed, kind->groups(), kind->plural,
                           kind->layers.size())
                 .str();
  }
  remark::analysis(getOperation().getLoc(), options())
      << llvm::formatv("{0} of {1} elements of parameters go, {2:F1} %", gone, all,
                       100.0 * static_cast<double>(gone) / static_cast<double>(all))
             .str();
  return success();
}

//===- Groups -----------------------------------------------------------------------------------------------------===//

static FailureOr<std::vector<double>> scoreByMagnitude(Layer &layer, const SymbolTable &symbols) {
  std::vector<double> scores(layer.groups, 1.0);
  for (const auto &[name, groups] : layer.analysis->params) {
    auto param = symbols.lookup<ParamOp>(name);
    if (param.getTensorType().getRank() != 2)
      continue;
    FailureOr<std::vector<float>> elements = readElements(param);
    if (failed(elements) || failed(checkFinite(param, *elements)))
      return failure();
    compress::InputGroups of{groups.groupOf, layer.groups};
    std::vector<double> factors = groups.axis == 1 ? compress::scoreColumns(asWeight(param, *elements), of)
                                                   : compress::scoreRows(asWeight(param, *elements), of);
    for (auto [score, factor] : llvm::zip_equal(scores, factors))
      score *= factor;
  }
  return scores;
}

/// The groups that go by what was measured; `elements` become those of the consumer without them.
FailureOr<std::vector<int64_t>> PruneStructured::chooseMeasured(Layer &layer, int64_t removed,
                                                                std::vector<float> &elements,
                                                                MeasuredInputs &inputs) const {
  compress::Weight weight = asWeight(layer.consumer, elements);
  compress::InputGroups groups{layer.analysis->params[layer.consumer.getSymNameAttr()].groupOf, layer.groups};
  if (method == "energy") {
    FailureOr<compress::Hessian> hessian = inputs.getHessian(layer.consumer);
    if (failed(hessian))
      return failure();
    return compress::chooseLowest(compress::scoreByEnergy(weight, *hessian, groups), removed);
  }
  FailureOr<const compress::InverseFactor *> factor = inputs.getFactor(layer.consumer, /*isOrdered=*/false);
  if (failed(factor))
    return failure();
  auto gone = compress::eliminateGroups(weight, **factor, groups, removed, std::min(removed, kRounds));
  if (failed(report(layer.consumer.getLoc(), gone.status())))
    return failure();
  return std::move(gone->groups);
}

FailureOr<SmallVector<bool>> PruneStructured::chooseGroups(Layer &layer, int64_t removed, const SymbolTable &symbols,
                                                           MeasuredInputs &inputs) const {
  ParamOp consumer = layer.consumer;
  FailureOr<std::vector<float>> before = readElements(consumer);
  if (failed(before) || failed(checkFinite(consumer, *before)))
    return failure();
  std::vector<float> elements = *before;
  FailureOr<std::vector<int64_t>> gone;
  if (needsStatistics()) {
    gone = chooseMeasured(layer, removed, elements, inputs);
  } else {
    FailureOr<std::vector<double>> scores = scoreByMagnitude(layer, symbols);
    if (succeeded(scores))
      gone = compress::chooseLowest(*scores, removed);
  }
  if (failed(gone) || failed(checkFinite(consumer, elements)))
    return failure();
  SmallVector<bool> isGone(layer.groups);
  for (int64_t group : *gone)
    isGone[group] = true;
  ArrayRef<int32_t> groupOf = layer.analysis->params[consumer.getSymNameAttr()].groupOf;
  for (size_t i = 0; i < elements.size(); ++i)
    if (int32_t group = groupOf[i % groupOf.size()]; group >= 0 && isGone[group])
      elements[i] = 0;
  std::string error;
  if (inputs.has(consumer)) {
    FailureOr<std::string> described = inputs.describeError(consumer, *before, elements);
    if (failed(described))
      return failure();
    error = ", " + *described;
  }
  writeElements(consumer, elements);
  remark::passed(consumer.getLoc(), options())
      << llvm::formatv("{0} keeps {1} of {2} inputs by {3}{4}", consumer.getSymName(),
                       layer.analysis->params[consumer.getSymNameAttr()].listKept(isGone).size(), groupOf.size(),
                       method.getValue(), error)
             .str();
  return isGone;
}

//===- The pass ---------------------------------------------------------------------------------------------------===//

LogicalResult PruneStructured::pruneLayer(Layer &layer, int64_t removed, const SharedUses &shared,
                                          const SymbolTable &symbols, MeasuredInputs &inputs) {
  if (layer.experts) {
    FailureOr<std::string> what = removeChannels(*layer.experts, {method, removed, kRounds}, shared, inputs);
    if (failed(what))
      return failure();
    remark::passed(layer.consumer.getLoc(), options()) << *what;
    return success();
  }
  FailureOr<SmallVector<bool>> isGone = chooseGroups(layer, removed, symbols, inputs);
  if (failed(isGone))
    return failure();
  cutGroups(*layer.analysis, *isGone, getOperation());
  for (const auto &[name, groups] : layer.analysis->params)
    if (failed(takeIndices(symbols.lookup<ParamOp>(name), groups.axis, groups.listKept(*isGone))))
      return failure();
  return success();
}

LogicalResult PruneStructured::prune(Kind &kind, const SharedUses &shared, const SymbolTable &symbols,
                                     MeasuredInputs &inputs) {
  for (size_t number = 0; kind.removed > 0 && number < kind.layers.size(); ++number) {
    Layer &layer = kind.layers[number];
    auto prune = [&] { return pruneLayer(layer, kind.removed, shared, symbols, inputs); };
    if (failed(visitParameter(layer.consumer, "hone-prune-structured", number, kind.layers.size(), prune)))
      return failure();
  }
  return success();
}

void PruneStructured::runOnOperation() {
  FailureOr<MeasuredInputs> inputs = MeasuredInputs::open(statistics, getOperation());
  if (failed(inputs) || failed(keepFingerprint(getOperation())))
    return signalPassFailure();
  SharedUses shared(getOperation());
  SymbolTable symbols(getOperation());
  Kind channelKind{"channels", "hidden channels", {}}, headKind{"heads", "GQA groups", {}},
      expertKind{"channels", "hidden channels of each expert", {}};
  findLayers(shared, channelKind, headKind);
  findExperts(shared, symbols, expertKind);
  bool hasExperts = !expertKind.layers.empty();
  for (auto [kind, isWanted] : {std::pair(&channelKind, channels.getValue()),
                                {&expertKind, channels.getValue()},
                                {&headKind, heads.getValue()}}) {
    for (Layer &layer : kind->layers)
      findConsumer(layer, symbols, *inputs);
    if (isWanted && kind->layers.empty() && kind != &expertKind && !(kind == &channelKind && hasExperts))
      remark::missed(getOperation().getLoc(), options()) << ("there are no " + kind->plural + " to remove").str();
    if (isWanted)
      refuseKind(*kind);
    else
      kind->layers.clear();
  }
  if (failed(chooseNumbers(channelKind, expertKind, headKind)))
    return signalPassFailure();
  for (Kind *kind : {&headKind, &channelKind, &expertKind})
    if (failed(prune(*kind, shared, symbols, *inputs)))
      return signalPassFailure();
  updateFunctions(getOperation());
  numChannels += channelKind.removed * static_cast<int64_t>(channelKind.layers.size());
  numHeads += headKind.removed * static_cast<int64_t>(headKind.layers.size());
  for (const Layer &layer : expertKind.layers)
    numChannels += expertKind.removed * static_cast<int64_t>(layer.experts->ops.front().getExpertCount());
}

} // namespace hone::prune
