// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which channels each expert keeps, and the weights without the others.

#include "ExpertChannels.h"

#include "hone/Compress/Structured.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/Report.h"

#include "mlir/IR/Builders.h"

#include <numeric>

using namespace mlir;

namespace hone::prune {

//===- What reads the weights -------------------------------------------------------------------------------------===//

static ParamOp getParam(Value weight, const SymbolTable &symbols) {
  auto get = weight ? weight.getDefiningOp<GetParamOp>() : GetParamOp();
  return get ? symbols.lookup<ParamOp>(get.getName()) : ParamOp();
}

static DenseElementsAttr getConstant(Value value) {
  Operation *op = value.getDefiningOp();
  return op ? op->getAttrOfType<DenseElementsAttr>("value") : DenseElementsAttr();
}

/// Why biases of channels, which `ops` read, cannot be cut, or an empty string.
static std::string getBiasBlocker(Value bias, ArrayRef<MoeOp> ops, const prunable::SharedUses &shared,
                                  const SymbolTable &symbols) {
  if (!bias || getConstant(bias))
    return "";
  ParamOp param = getParam(bias, symbols);
  if (!param)
    return "a bias of its experts is computed";
  for (GetParamOp read : shared.reads.find(param.getSymNameAttr())->second)
    for (Operation *user : read->getUsers())
      if (!llvm::is_contained(ops, dyn_cast<MoeOp>(user)))
        return (param.getSymName() + " is read in another way too").str();
  return prunable::getCutBlocker(param);
}

ExpertBlock::ExpertBlock(MoeOp moe, const prunable::SharedUses &shared, const SymbolTable &symbols)
    : ops{moe}, up(getParam(moe.getUp(), symbols)), down(getParam(moe.getDown(), symbols)),
      gate(getParam(moe.getGate(), symbols)) {
  if (!up || !down || (moe.getGate() && !gate)) {
    blocker = "a weight of its experts is computed";
    return;
  }
  for (ParamOp param : {up, down, gate}) {
    if (!param)
      continue;
    if (blocker.empty())
      blocker = prunable::getCutBlocker(param);
    if (blocker.empty() && !getChannelScales(param).empty())
      blocker = (param.getSymName() + " has scales of channels").str();
    for (GetParamOp read : shared.reads.find(param.getSymNameAttr())->second)
      for (Operation *user : read->getUsers()) {
        auto other = dyn_cast<MoeOp>(user);
        if (!other || getParam(other.getUp(), symbols) != up || getParam(other.getDown(), symbols) != down ||
            getParam(other.getGate(), symbols) != gate || other.getFused() != moe.getFused())
          blocker = (param.getSymName() + " is read in another way too").str();
        else if (!llvm::is_contained(ops, other))
          ops.push_back(other);
      }
  }
  for (MoeOp op : ops)
    for (Value bias : {op.getUpBias(), op.getGateBias()})
      if (blocker.empty())
        blocker = getBiasBlocker(bias, ops, shared, symbols);
}

int64_t ExpertBlock::countElements() const {
  int64_t count = 0;
  for (ParamOp param : {up, down, gate})
    count += param ? ParamOp(param).getTensorType().getNumElements() : 0;
  auto moe = MoeOp(ops.front());
  for (Value bias : {moe.getUpBias(), moe.getGateBias()})
    if (bias && bias.getDefiningOp<GetParamOp>())
      count += cast<RankedTensorType>(bias.getType()).getNumElements();
  return count / channels();
}

//===- Choice -----------------------------------------------------------------------------------------------------===//

namespace {
/// Where the rows of a weight are those of channels: row r of an expert is of channel r / step % channels, and one of `parts`.
struct ChannelRows {
  int64_t channels, parts, step;

  ChannelRows(std::optional<FusedRows> fused, int64_t channels)
      : channels(channels), parts(fused ? 2 : 1), step(fused == FusedRows::Alternate ? 2 : 1) {}

  int64_t count() const { return channels * parts; }
  int64_t channelOf(int64_t row) const { return row / step % channels; }
  int64_t partOf(int64_t row) const { return step > 1 ? row % step : row / channels; }
};

/// A matrix of all experts, and its elements.
struct ExpertElements {
  ParamOp param;
  std::vector<float> elements;

  static FailureOr<ExpertElements> read(ParamOp param) {
    ExpertElements read{param, {}};
    if (!param)
      return read;
    FailureOr<std::vector<float>> elements = readElements(param);
    if (failed(elements) || failed(checkFinite(param, *elements)))
      return failure();
    read.elements = std::move(*elements);
    return read;
  }
  compress::Weight of(int64_t expert, int64_t experts) {
    size_t size = elements.size() / experts;
    return asWeight(param, MutableArrayRef(elements).slice(expert * size, size));
  }
};
} // namespace

static SmallVector<int32_t> enumerate(int64_t count) {
  SmallVector<int32_t> channels(count);
  std::iota(channels.begin(), channels.end(), 0);
  return channels;
}

/// Multiplies the scores of channels with the squares of their rows in `weight`, of each part by itself.
static void scoreRows(const compress::Weight &weight, const ChannelRows &rows, std::vector<double> &scores) {
  for (int64_t part = 0; part < rows.parts; ++part) {
    SmallVector<int32_t> channelOf;
    for (int64_t row = 0; row < rows.count(); ++row)
      channelOf.push_back(rows.partOf(row) == part ? static_cast<int32_t>(rows.channelOf(row)) : -1);
    for (auto [score, factor] : llvm::zip_equal(scores, compress::scoreRows(weight, {channelOf, rows.channels})))
      score *= factor;
  }
}

/// The channels of an expert that go by what was measured; `weight` gets the error compensation.
static FailureOr<std::vector<int64_t>> chooseMeasured(const MeasuredWeight &measured, const compress::Weight &weight,
                                                      const ExpertChoice &choice, MeasuredInputs &inputs) {
  SmallVector<int32_t> channels = enumerate(weight.columns);
  compress::InputGroups groups{channels, weight.columns};
  if (choice.method == "energy") {
    FailureOr<compress::Hessian> hessian = inputs.getHessian(measured);
    if (failed(hessian))
      return failure();
    return compress::chooseLowest(compress::scoreByEnergy(weight, *hessian, groups), choice.removed);
  }
  FailureOr<const compress::InverseFactor *> factor = inputs.getFactor(measured, /*isOrdered=*/false);
  if (failed(factor))
    return failure();
  auto gone =
      compress::eliminateGroups(weight, **factor, groups, choice.removed, std::min(choice.removed, choice.rounds));
  if (failed(report(ParamOp(measured.param).getLoc(), gone.status())))
    return failure();
  return std::move(gone->groups);
}

//===- Removal ----------------------------------------------------------------------------------------------------===//

/// Lets everything that reads `param` see its type.
static void updateReads(ParamOp param, const prunable::SharedUses &shared) {
  for (GetParamOp read : shared.reads.find(param.getSymNameAttr())->second)
    read.getResult().setType(param.getTensorType());
}

/// A constant of `type` with elements `indices` of the one that `use` reads.
static void cutConstant(OpOperand &use, RankedTensorType type, ArrayRef<int64_t> indices) {
  SmallVector<Attribute> all(getConstant(use.get()).getValues<Attribute>()), left;
  for (int64_t index : indices)
    left.push_back(all[index]);
  OpBuilder b(use.getOwner());
  Operation *shorter = b.clone(*use.get().getDefiningOp());
  shorter->setAttr("value", DenseElementsAttr::get(type, left));
  shorter->getResult(0).setType(type);
  use.set(shorter->getResult(0));
}

/// Cuts a bias, [experts, rows], down to `indices`, which are those of all experts one after the other. Parameters in `done` are cut.
static LogicalResult cutBias(MutableOperandRange operand, ArrayRef<int64_t> indices, const prunable::SharedUses &shared,
                             llvm::DenseSet<Operation *> &done) {
  if (operand.empty())
    return success();
  OpOperand &use = operand[0];
  auto type = cast<RankedTensorType>(use.get().getType());
  int64_t experts = type.getDimSize(0), kept = static_cast<int64_t>(indices.size()) / experts;
  auto smaller = RankedTensorType::get({experts, kept}, type.getElementType(), type.getEncoding());
  if (getConstant(use.get())) {
    cutConstant(use, smaller, indices);
    return success();
  }
  auto get = use.get().getDefiningOp<GetParamOp>();
  auto param = SymbolTable::lookupNearestSymbolFrom<ParamOp>(get, get.getNameAttr());
  if (!done.insert(param).second)
    return success();
  FailureOr<std::vector<float>> elements = readElements(param);
  if (failed(elements))
    return failure();
  std::vector<float> left;
  for (int64_t index : indices)
    left.push_back((*elements)[index]);
  param.setType(smaller);
  writeElements(param, left);
  updateReads(param, shared);
  return success();
}

/// The indices of what stays of `rows` an expert, all experts one after the other; `kept` are the channels of each.
static SmallVector<int64_t> listRows(ArrayRef<SmallVector<int64_t>> kept, const ChannelRows &rows) {
  SmallVector<int64_t> indices;
  for (auto [expert, channels] : llvm::enumerate(kept)) {
    llvm::BitVector stays(rows.channels);
    for (int64_t channel : channels)
      stays.set(channel);
    for (int64_t row = 0; row < rows.count(); ++row)
      if (stays[rows.channelOf(row)])
        indices.push_back(static_cast<int64_t>(expert) * rows.count() + row);
  }
  return indices;
}

static void cutColumns(ExpertElements &down, ArrayRef<SmallVector<int64_t>> kept) {
  auto experts = static_cast<int64_t>(kept.size()), count = static_cast<int64_t>(kept.front().size());
  std::vector<float> left;
  SmallVector<int64_t> inputs;
  for (int64_t expert = 0; expert < experts; ++expert) {
    compress::Weight weight = down.of(expert, experts);
    llvm::append_range(inputs, kept[expert]);
    for (int64_t row = 0; row < weight.rows; ++row)
      for (int64_t channel : kept[expert])
        left.push_back(weight.row(row)[channel]);
  }
  keepInputs(down.param, inputs, experts);
  RankedTensorType type = down.param.getTensorType();
  down.param.setType(RankedTensorType::get({type.getDimSize(0), count}, type.getElementType(), type.getEncoding()));
  writeElements(down.param, left);
}

//===- All of it --------------------------------------------------------------------------------------------------===//

namespace {
/// The weights of a block while its channels are chosen.
struct Weights {
  ExpertElements up, gate, down;
  ChannelRows upRows, gateRows;

  static FailureOr<Weights> read(const ExpertBlock &block) {
    FailureOr<ExpertElements> up = ExpertElements::read(block.up), gate = ExpertElements::read(block.gate),
                              down = ExpertElements::read(block.down);
    if (failed(up) || failed(gate) || failed(down))
      return failure();
    int64_t channels = block.channels();
    return Weights{std::move(*up), std::move(*gate), std::move(*down),
                   ChannelRows(MoeOp(block.ops.front()).getFused(), channels), ChannelRows(std::nullopt, channels)};
  }
};
} // namespace

static bool isMeasured(const ExpertBlock &block, const ExpertChoice &choice, int64_t expert,
                       const MeasuredInputs &inputs) {
  return choice.method != "magnitude" && inputs.has({block.down, expert});
}

/// The channels that `expert` keeps; the columns of the others become 0.
static FailureOr<SmallVector<int64_t>> chooseChannels(const ExpertBlock &block, const ExpertChoice &choice,
                                                      Weights &weights, int64_t expert, MeasuredInputs &inputs) {
  int64_t experts = block.experts();
  compress::Weight weight = weights.down.of(expert, experts);
  FailureOr<std::vector<int64_t>> gone;
  if (isMeasured(block, choice, expert, inputs)) {
    gone = chooseMeasured({block.down, expert}, weight, choice, inputs);
  } else {
    std::vector<double> scores = compress::scoreColumns(weight, {enumerate(weight.columns), weight.columns});
    scoreRows(weights.up.of(expert, experts), weights.upRows, scores);
    if (block.gate)
      scoreRows(weights.gate.of(expert, experts), weights.gateRows, scores);
    gone = compress::chooseLowest(scores, choice.removed);
  }
  if (failed(gone))
    return failure();
  for (int64_t row = 0; row < weight.rows; ++row)
    for (int64_t channel : *gone)
      weight.row(row)[channel] = 0;
  SmallVector<int64_t> kept;
  for (int64_t channel = 0; channel < weight.columns; ++channel)
    if (!llvm::is_contained(*gone, channel))
      kept.push_back(channel);
  return kept;
}

static FailureOr<std::string> describe(const ExpertBlock &block, const ExpertChoice &choice, ArrayRef<float> before,
                                       ArrayRef<float> after, MeasuredInputs &inputs) {
  int64_t experts = block.experts(), unmeasured = 0;
  for (int64_t expert = 0; expert < experts; ++expert)
    unmeasured += !isMeasured(block, choice, expert, inputs);
  std::string text = (ParamOp(block.down).getSymName() + " keeps " + Twine(block.channels() - choice.removed) + " of " +
                      Twine(block.channels()) + " inputs of each of " + Twine(experts) + " experts by " + choice.method)
                         .str();
  if (choice.method != "magnitude" && unmeasured > 0)
    text += (", of " + Twine(unmeasured) + " by magnitude: no row chose them").str();
  if (inputs.countExperts(block.down) == 0)
    return text;
  FailureOr<std::string> error = inputs.describeError(block.down, before, after);
  if (failed(error))
    return failure();
  return error->empty() ? text : text + ", " + *error;
}

static LogicalResult cut(const ExpertBlock &block, Weights &weights, ArrayRef<SmallVector<int64_t>> kept,
                         const prunable::SharedUses &shared) {
  SmallVector<int64_t> ofUp = listRows(kept, weights.upRows), ofGate = listRows(kept, weights.gateRows);
  llvm::DenseSet<Operation *> done;
  for (MoeOp op : block.ops) {
    if (failed(cutBias(op.getUpBiasMutable(), ofUp, shared, done)) ||
        failed(cutBias(op.getGateBiasMutable(), ofGate, shared, done)))
      return failure();
  }
  if (failed(takeIndices(block.up, 0, ofUp)) ||
      (block.gate && block.gate != block.up && failed(takeIndices(block.gate, 0, ofGate))))
    return failure();
  cutColumns(weights.down, kept);
  for (ParamOp param : {block.up, block.down, block.gate})
    if (param)
      updateReads(param, shared);
  return success();
}

FailureOr<std::string> removeChannels(const ExpertBlock &block, const ExpertChoice &choice,
                                      const prunable::SharedUses &shared, MeasuredInputs &inputs) {
  FailureOr<Weights> weights = Weights::read(block);
  if (failed(weights))
    return failure();
  std::vector<float> before = weights->down.elements;
  SmallVector<SmallVector<int64_t>> kept;
  for (int64_t expert = 0; expert < block.experts(); ++expert) {
    FailureOr<SmallVector<int64_t>> channels = chooseChannels(block, choice, *weights, expert, inputs);
    if (failed(channels))
      return failure();
    kept.push_back(std::move(*channels));
  }
  const std::vector<float> &after = weights->down.elements;
  if (failed(checkFinite(block.down, after)))
    return failure();
  FailureOr<std::string> text = describe(block, choice, before, after, inputs);
  if (failed(text) || failed(cut(block, *weights, kept, shared)))
    return failure();
  return text;
}

} // namespace hone::prune
