// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers that read the same values, such as the projections of queries, keys and values, go to one kernel.

#include "CudaSelection.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace hone {

/// Layers of a kernel at most.
static constexpr size_t kMostSiblings = 3;

/// The operands of a kernel for each layer; two layers are the last two.
static constexpr struct {
  StringLiteral weight, bias, y;
} kOperands[kMostSiblings] = {
    {"first", "firstBias", "firstY"}, {"second", "secondBias", "secondY"}, {"third", "thirdBias", "thirdY"}};

static bool isSibling(ArrayRef<LinearOp> siblings, LinearOp layer) {
  LinearOp first = siblings.empty() ? layer : siblings.front();
  return layer.getX() == first.getX() && areReadTogether({first.getWeight(), layer.getWeight()}) &&
         arePlainFloats({layer.getX(), layer.getBias()});
}

/// Whether `op` ends a row of siblings: what comes after it is another part of the model, whose results would wait for long.
static bool endsSiblings(Operation *op) { return isa<LinearOp, AttentionOp, MlpOp, GatedMlpOp, MoeOp>(op); }

/// Siblings of a block, in rows of as many as a kernel takes.
static SmallVector<SmallVector<LinearOp>> findSiblings(Block &block) {
  SmallVector<SmallVector<LinearOp>> rows(1);
  for (Operation &op : block) {
    auto layer = dyn_cast<LinearOp>(op);
    bool continues = layer && rows.back().size() < kMostSiblings && isSibling(rows.back(), layer);
    if (!continues && endsSiblings(&op))
      rows.emplace_back();
    if (layer && (continues || isSibling({}, layer)))
      rows.back().push_back(layer);
  }
  llvm::erase_if(rows, [](const auto &row) { return row.size() < 2; });
  return rows;
}

/// Reads a weight that lies in memory in front of `op`, if it is read later in the block: nothing writes to weights.
static void readBefore(Value parameter, Operation *op) {
  auto read = parameter.getDefiningOp<bufferization::ToTensorOp>();
  auto weight = read ? read.getBuffer().getDefiningOp<hrt::WeightOp>() : hrt::WeightOp();
  if (!weight || read->getBlock() != op->getBlock() || read->isBeforeInBlock(op))
    return;
  read->moveBefore(op);
  if (weight->getBlock() == op->getBlock() && op->isBeforeInBlock(weight))
    weight->moveBefore(read);
}

/// Makes the call in front of the first layer; fails where a weight or bias is not known there.
static LogicalResult launch(MutableArrayRef<LinearOp> siblings, Value call) {
  LinearOp first = siblings.front();
  IRRewriter b(first);
  SmallVector<Value> parameters;
  for (LinearOp layer : siblings)
    llvm::append_range(parameters, layer->getOperands().drop_front()); // after x
  for (Value parameter : parameters)
    readBefore(parameter, first);
  if (failed(moveValueDefinitions(b, parameters, first)))
    return failure();
  Value weight = first.getWeight();
  KernelCall kernel{"cuda.sibling_linear." + getFormat(weight), {}, {}, {}};
  addFormatIntegers(kernel, getLevels(weight));
  for (auto [layer, names] : llvm::zip_equal(siblings, ArrayRef(kOperands).take_back(siblings.size()))) {
    FailureOr<SmallVector<Value>> y = createDestinations(b, layer);
    if (failed(y))
      return failure();
    kernel.operands.append({{names.weight, layer.getWeight()}, {names.bias, layer.getBias()}, {names.y, y->front()}});
  }
  ImplicitLocOpBuilder builder(first.getLoc(), b);
  addInput(builder, kernel, first.getX(), weight, llvm::to_vector_of<Operation *>(siblings));
  hrt::KernelOp launched = createKernel(b, first.getLoc(), call, kernel);
  for (auto [layer, result] : llvm::zip_equal(siblings, launched.getResults()))
    replaceByResults(layer, result);
  return success();
}

int64_t selectCudaSiblings(func::FuncOp entry) {
  int64_t count = 0;
  entry.walk([&](Block *block) {
    SmallVector<SmallVector<LinearOp>> rows = findSiblings(*block);
    for (SmallVector<LinearOp> &siblings : rows)
      if (succeeded(launch(siblings, entry.getArgument(0))))
        count += static_cast<int64_t>(siblings.size());
  });
  return count;
}

} // namespace hone
