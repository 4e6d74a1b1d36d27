// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-permute-channels: channels get an order in which N:M pruning keeps more. Weights before and after it change their
// order together, so that the model means the same.

#include "ResidualStream.h"

#include "hone/Compress/ChannelOrder.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/ParameterActions.h"
#include "hone/Transforms/MeasuredInputs.h"
#include "hone/Transforms/Passes.h"
#include "hone/Transforms/ReturnedProducts.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>

namespace hone {
#define GEN_PASS_DEF_PERMUTECHANNELS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

/// Rows of all weights that an order is looked for by.
static constexpr int64_t kMostRows = 1024;

namespace {
/// Channels that change their order together.
struct Channels {
  int64_t count = 0;
  llvm::MapVector<Operation *, bool> columns; // matrices by their inputs; whether they are pruned
  llvm::SetVector<Operation *> rows;          // matrices by their outputs, and vectors
  std::string blocker;                        // why they cannot, or empty
};

struct PermuteChannels : impl::PermuteChannelsBase<PermuteChannels> {
  using PermuteChannelsBase::PermuteChannelsBase;

  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override;

private:
  Channels findResidualStream();
  std::vector<Channels> findHidden();
  LogicalResult permute(const Channels &channels, MeasuredInputs &inputs);
  FailureOr<std::vector<float>> measureScores(const Channels &channels, MeasuredInputs &inputs);
  LogicalResult reorder(const Channels &channels, ArrayRef<int64_t> order);

  llvm::MapVector<Operation *, SmallVector<GetParamOp>> reads;
};
} // namespace

LogicalResult PermuteChannels::initialize(MLIRContext *context) {
  if (m < 2 || m > 16 || n < 1 || n >= m)
    return emitError(UnknownLoc::get(context))
           << "expected n of m inputs to be 1 to m - 1 of 2 to 16, but got " << n.getValue() << " of " << m.getValue();
  return success();
}

//===- What changes together --------------------------------------------------------------------------------------===//

/// Why the parameter cannot be part of it, or an empty string.
static std::string getBlocker(ParamOp param) {
  RankedTensorType type = param.getTensorType();
  if (!type.getElementType().isF32() || (type.getEncoding() && !isa<StoredAttr>(type.getEncoding())))
    return (param.getSymName() + " is not of f32").str();
  return getChannelScales(param).empty() ? "" : (param.getSymName() + " has scales of channels").str();
}

Channels PermuteChannels::findResidualStream() {
  Channels channels;
  residual::ResidualStream found = residual::findResidualStream(getOperation());
  channels.count = found.width;
  channels.blocker = found.blocker;
  for (const auto &[op, part] : found.parts) {
    if (part.role == residual::Role::Reader)
      channels.columns[op] = !isReturnedProduct(reads.lookup(op));
    else if (part.role == residual::Role::Table)
      channels.columns[op] = false;
    else
      channels.rows.insert(op);
  }
  return channels;
}

/// Those between the products of each feed-forward block that parameters make, where no other operation reads them.
std::vector<Channels> PermuteChannels::findHidden() {
  SymbolTable symbols(getOperation());
  llvm::MapVector<Operation *, Channels> found; // by the last product's weight
  llvm::DenseMap<Operation *, size_t> used;
  auto add = [&](Value down, ValueRange before) {
    auto lookUp = [&](Value value) -> Operation * {
      auto get = value.getDefiningOp<GetParamOp>();
      return get ? symbols.lookup(get.getName()) : nullptr;
    };
    Operation *last = lookUp(down);
    if (!last)
      return;
    Channels channels;
    channels.count = cast<ParamOp>(last).getTensorType().getDimSize(1);
    channels.columns[last] = true;
    ++used[last];
    for (Value value : before) {
      Operation *op = lookUp(value);
      if (!op || !channels.rows.insert(op))
        channels.blocker = "its weights are computed, or the same";
      else
        ++used[op];
    }
    auto [known, isNew] = found.try_emplace(last, channels);
    if (!isNew && known->second.rows.getArrayRef() != channels.rows.getArrayRef())
      known->second.blocker = "another block reads its weights";
  };
  getOperation().walk([&](WeightedOpInterface op) {
    SmallVector<Value> before, biases;
    Value down;
    for (const WeightUse &weight : op.listWeights()) {
      if (weight.experts > 0)
        return;
      if (weight.inputs == WeightInputs::Hidden) {
        down = weight.weight->get();
        continue;
      }
      before.push_back(weight.weight->get());
      for (OpOperand &bias : weight.bias)
        biases.push_back(bias.get());
    }
    before.append(biases);
    if (down)
      add(down, before);
  });
  std::vector<Channels> all;
  for (auto &[last, channels] : found) {
    SmallVector<Operation *> ops(channels.rows.getArrayRef());
    ops.push_back(last);
    for (Operation *op : ops) {
      size_t uses = 0;
      for (GetParamOp read : reads.lookup(op))
        uses += static_cast<size_t>(std::distance(read->use_begin(), read->use_end()));
      if (uses != used[op])
        channels.blocker = "another operation reads its weights";
    }
    all.push_back(std::move(channels));
  }
  return all;
}

//===- The change -------------------------------------------------------------------------------------------------===//

/// What dropping each element costs, w_j² H_jj as a share of all of its weight; rows that lie evenly in each weight stand for all.
FailureOr<std::vector<float>> PermuteChannels::measureScores(const Channels &channels, MeasuredInputs &inputs) {
  std::vector<float> scores;
  int64_t pruned = llvm::count_if(channels.columns, [](const auto &entry) { return entry.second; });
  for (const auto &[op, isPruned] : channels.columns) {
    if (!isPruned)
      continue;
    auto param = cast<ParamOp>(op);
    FailureOr<std::vector<float>> elements = readElements(param);
    if (failed(elements) || failed(checkFinite(param, *elements)))
      return failure();
    std::vector<float> importance(channels.count, 1);
    if (inputs.has(param)) {
      FailureOr<compress::Hessian> hessian = inputs.getHessian(param);
      if (failed(hessian))
        return failure();
      for (int64_t j = 0; j < channels.count; ++j)
        importance[j] = hessian->diagonal(j);
    }
    compress::Weight weight = asWeight(param, *elements);
    int64_t looked = std::min(weight.rows, std::max<int64_t>(kMostRows / pruned, 1));
    std::vector<double> costs;
    for (int64_t i = 0; i < looked; ++i)
      for (int64_t j = 0; j < channels.count; ++j) {
        double element = weight.row(i * weight.rows / looked)[j];
        costs.push_back(element * element * importance[j]);
      }
    double whole = std::accumulate(costs.begin(), costs.end(), 0.0);
    for (double cost : costs)
      scores.push_back(whole > 0 ? static_cast<float>(cost / whole) : 0);
  }
  return scores;
}

LogicalResult PermuteChannels::reorder(const Channels &channels, ArrayRef<int64_t> order) {
  for (const auto &[op, isPruned] : channels.columns)
    if (failed(takeIndices(cast<ParamOp>(op), /*axis=*/1, order)))
      return failure();
  for (Operation *op : channels.rows)
    if (failed(takeIndices(cast<ParamOp>(op), /*axis=*/0, order)))
      return failure();
  return success();
}

LogicalResult PermuteChannels::permute(const Channels &channels, MeasuredInputs &inputs) {
  ParamOp first;
  for (const auto &[op, isPruned] : channels.columns)
    if (isPruned && !first)
      first = cast<ParamOp>(op);
  auto options = remark::RemarkOpts::name("Permuted").category("hone-permute-channels");
  Location loc = first ? first.getLoc() : getOperation().getLoc();
  std::string name = first ? ("the input of " + first.getSymName()).str() : "the residual stream",
              blocker = channels.blocker;
  for (const auto &[op, isPruned] : channels.columns)
    if (blocker.empty())
      blocker = getBlocker(cast<ParamOp>(op));
  for (Operation *op : channels.rows)
    if (blocker.empty())
      blocker = getBlocker(cast<ParamOp>(op));
  if (blocker.empty() && !first)
    blocker = "no product reads it that is pruned";
  if (blocker.empty() && channels.count % m != 0)
    blocker = ("its " + Twine(channels.count) + " channels are no multiple of " + Twine(m)).str();
  if (!blocker.empty()) {
    remark::missed(loc, options) << name + " stays as it is: " + blocker;
    return success();
  }
  FailureOr<std::vector<float>> scores = measureScores(channels, inputs);
  if (failed(scores))
    return failure();
  compress::NmPattern pattern{n, m};
  std::vector<int64_t> order(channels.count);
  std::iota(order.begin(), order.end(), int64_t(0));
  double before = compress::keptScore(*scores, order, pattern);
  order = compress::findChannelOrder(*scores, channels.count, pattern);
  double after = compress::keptScore(*scores, order, pattern), whole = 0;
  for (float score : *scores)
    whole += score;
  ++numPermuted;
  remark::passed(loc, options) << name +
                                      llvm::formatv(" has another order: {0:F4} of the outputs' energy stays when it "
                                                    "is pruned, and not {1:F4}",
                                                    after / whole, before / whole)
                                          .str();
  return reorder(channels, order);
}

void PermuteChannels::runOnOperation() {
  FailureOr<MeasuredInputs> inputs = MeasuredInputs::open(statistics, getOperation());
  if (failed(inputs) || failed(keepFingerprint(getOperation())))
    return signalPassFailure();
  reads = findReads(getOperation());
  std::vector<Channels> all = findHidden();
  all.push_back(findResidualStream());
  for (auto [number, channels] : llvm::enumerate(all)) {
    auto reorder = [&, &channels = channels] { return permute(channels, *inputs); };
    LogicalResult result = channels.columns.empty()
                               ? reorder()
                               : visitParameter(cast<ParamOp>(channels.columns.begin()->first), "hone-permute-channels",
                                                number, all.size(), reorder);
    if (failed(result))
      return signalPassFailure();
  }
}

} // namespace hone
