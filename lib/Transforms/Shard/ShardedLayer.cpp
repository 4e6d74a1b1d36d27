// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layer as one rank has it is the layer without the groups of the others, which pruning knows how to cut.

#include "ShardedLayer.h"

#include "hone/Dialect/Hone/Shards.h"
#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/Rows.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;

namespace hone::sharding {

using prunable::GroupAxis;

/// The one axis of the grid.
static constexpr shard::GridAxis kAxis = 0;

SmallVector<int32_t, 0> ShardedLayer::listRanks(int64_t count) const {
  SmallVector<int32_t, 0> rankOf(count);
  for (auto [index, rank] : llvm::enumerate(rankOf))
    rank = static_cast<int32_t>(static_cast<int64_t>(index) * ranks / count);
  return rankOf;
}

static SmallVector<int64_t, 0> listIndices(const GroupAxis &groups, int64_t rank) {
  SmallVector<int64_t, 0> indices;
  for (auto [index, group] : llvm::enumerate(groups.groupOf))
    if (group < 0 || group == rank)
      indices.push_back(static_cast<int64_t>(index));
  return indices;
}

SmallVector<StringAttr> ShardedLayer::listParams() const {
  return llvm::map_to_vector(analysis.params, [](const auto &entry) { return entry.first; });
}

//===- What is split ----------------------------------------------------------------------------------------------===//

/// Lists the operations that read what is split, and whose results are not: sums over it, which ranks add up.
std::string ShardedLayer::findSums() {
  for (Operation *op : analysis.touched) {
    bool reads = llvm::any_of(op->getOpOperands(), [&](OpOperand &use) { return analysis.find(use); });
    bool makes = llvm::any_of(op->getResults(), [&](Value result) { return analysis.find(result); });
    if (!reads || makes || isa<func::ReturnOp>(op) || readsSizes(op))
      continue;
    std::optional<WeightUse> writer = findWriter(op);
    bool isSum = (writer && writer->inputs != WeightInputs::Numbers) || onnxir::isNode(op, "MatMul");
    auto type = isSum ? cast<RankedTensorType>(op->getResult(0).getType()) : RankedTensorType();
    if (!isSum || !type.getElementType().isF32())
      return (op->getName().getStringRef() + " adds up what is split, in a way that is not known").str();
    sums.push_back(op);
  }
  return sums.empty() && !llvm::any_of(analysis.touched, llvm::IsaPred<func::ReturnOp>)
             ? "nothing adds up what is split"
             : "";
}

/// Whether ranks have equal parts in their order.
bool ShardedLayer::hasEqualParts(const GroupAxis &groups) const {
  auto size = static_cast<int64_t>(groups.groupOf.size());
  return size % ranks == 0 && llvm::equal(groups.groupOf, listRanks(size));
}

std::string ShardedLayer::findBlocker(const SymbolTable &symbols) const {
  for (const auto &[name, groups] : analysis.params) {
    auto param = symbols.lookup<ParamOp>(name);
    if (param->hasAttr(kShardsAttrName))
      return (name.getValue() + " is split already").str();
    auto size = static_cast<int64_t>(listIndices(groups, 0).size());
    for (int64_t rank = 0; rank < ranks; ++rank) {
      SmallVector<int64_t, 0> indices = listIndices(groups, rank);
      if (static_cast<int64_t>(indices.size()) != size)
        return (name.getValue() + " has parts of different sizes").str();
      if (std::string blocker = ParamSlices(param, groups.axis, size).getBlocker(indices); !blocker.empty())
        return blocker;
    }
  }
  for (const auto &[use, groups] : analysis.constants)
    if (!isa<FloatType>(cast<RankedTensorType>(use->get().getType()).getElementType()))
      return "a constant that is split has no floats";
  for (const auto &[value, groups] : analysis.values) {
    bool isOutside = isa<BlockArgument>(value) || llvm::any_of(value.getUsers(), llvm::IsaPred<func::ReturnOp>);
    if (isOutside && !hasEqualParts(groups))
      return "an argument or a result of the model has its parts in another order";
  }
  return "";
}

std::string ShardedLayer::follow(const SymbolTable &symbols) {
  analysis.run();
  std::string blocker = analysis.getBlocker().str();
  if (blocker.empty())
    blocker = findSums();
  return blocker.empty() ? findBlocker(symbols) : blocker;
}

//===- Splitting --------------------------------------------------------------------------------------------------===//

/// Constants of the graph are part of the program, which is the same on all ranks: they become parameters.
void ShardedLayer::nameConstants(SymbolTable &symbols) {
  OpBuilder b(module.getContext());
  for (const auto &[use, groups] : analysis.constants) {
    Operation *constant = use->get().getDefiningOp();
    auto type = cast<RankedTensorType>(use->get().getType());
    b.clearInsertionPoint();
    auto param = ParamOp::create(b, constant->getLoc(), "constant", type, constant->getAttr("value"));
    symbols.insert(param, module.getBody()->begin());
    b.setInsertionPoint(use->getOwner());
    use->set(GetParamOp::create(b, constant->getLoc(), type, param.getSymName()));
    analysis.values[use->get()] = groups;
    analysis.params[param.getSymNameAttr()] = groups;
    if (constant->use_empty())
      constant->erase();
  }
  analysis.constants.clear();
}

LogicalResult ShardedLayer::splitParams(const SymbolTable &symbols) {
  for (const auto &[name, groups] : analysis.params) {
    ParamSlices slices(symbols.lookup<ParamOp>(name), groups.axis, static_cast<int64_t>(listIndices(groups, 0).size()));
    SmallVector<Attribute> shards;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      FailureOr<Attribute> shard = slices.take(listIndices(groups, rank));
      if (failed(shard))
        return failure();
      shards.push_back(*shard);
    }
    slices.assign(shards);
  }
  return success();
}

/// Arguments of functions are whole, of the types `whole`; each rank takes its part.
void ShardedLayer::sliceArguments(Block &body, TypeRange whole) {
  OpBuilder b = OpBuilder::atBlockBegin(&body);
  for (auto [argument, type] : llvm::zip_equal(body.getArguments(), whole)) {
    const GroupAxis *groups = analysis.find(argument);
    if (!groups)
      continue;
    Type part = argument.getType();
    argument.setType(type);
    auto slice = shard::AllSliceOp::create(b, argument.getLoc(), part, argument, kGridName, kAxis, groups->axis);
    argument.replaceAllUsesExcept(slice.getResult(), slice);
  }
}

/// As arguments are.
void ShardedLayer::gatherResults(Operation *terminator) {
  OpBuilder b(terminator);
  for (OpOperand &use : terminator->getOpOperands()) {
    const GroupAxis *groups = analysis.find(use.get());
    if (!groups)
      continue;
    auto part = cast<RankedTensorType>(use.get().getType());
    SmallVector<int64_t> shape(part.getShape());
    shape[groups->axis] *= ranks;
    auto whole = RankedTensorType::get(shape, part.getElementType(), part.getEncoding());
    use.set(shard::AllGatherOp::create(b, use.get().getLoc(), whole, kGridName, kAxis, use.get(),
                                       APInt(64, static_cast<uint64_t>(groups->axis))));
  }
}

/// The bias of a sum, taken away from it, or null.
static Value takeBias(Operation *sum) {
  std::optional<WeightUse> writer = findWriter(sum);
  if (!writer || writer->bias.empty())
    return {};
  Value value = writer->bias[0].get();
  writer->bias.clear();
  return value;
}

/// The bias is added once, to the sum of all ranks.
void ShardedLayer::addUp(Operation *sum) {
  OpBuilder b(sum->getContext());
  b.setInsertionPointAfter(sum);
  Value bias = takeBias(sum), part = sum->getResult(0);
  auto reduce = shard::AllReduceOp::create(b, sum->getLoc(), part.getType(), kGridName, kAxis, part);
  Value whole = reduce.getResult();
  if (bias) {
    OperationState state(onnxir::nameBeside(sum->getLoc(), "/bias"), onnxir::getOperationName("", "Add"));
    state.addOperands({whole, bias});
    state.addTypes(part.getType());
    whole = b.create(state)->getResult(0);
  }
  part.replaceAllUsesExcept(whole, reduce);
}

LogicalResult ShardedLayer::split(SymbolTable &symbols) {
  nameConstants(symbols);
  SmallVector<bool> isElsewhere(ranks, true);
  isElsewhere[0] = false; // types are the same for all ranks
  SmallVector<func::FuncOp> functions;
  SmallVector<SmallVector<Type>> arguments;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal()) {
      functions.push_back(function);
      arguments.emplace_back(function.getBody().front().getArgumentTypes());
    }
  prunable::cutGroups(analysis, isElsewhere, module);
  if (failed(splitParams(symbols)))
    return failure();
  for (auto [function, types] : llvm::zip_equal(functions, arguments)) {
    gatherResults(function.getBody().back().getTerminator());
    sliceArguments(function.getBody().front(), types);
  }
  for (Operation *sum : sums)
    addUp(sum);
  return success();
}

} // namespace hone::sharding
