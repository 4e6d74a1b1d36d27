//===- HoneOpInterfaces.cpp - what passes ask operations --------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The answers follow from the interfaces; operations implement these beside their verifiers.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneOpInterfaces.h"

using namespace mlir;
using namespace hone;

#include "hone/Dialect/Hone/HoneOpInterfaces.cpp.inc"

static SmallVector<WeightUse> listWeights(Operation *op) {
  auto weighted = dyn_cast_or_null<WeightedOpInterface>(op);
  return weighted ? weighted.listWeights() : SmallVector<WeightUse>();
}

/// The first weight of `op` that `isWanted` accepts.
static std::optional<WeightUse> findFirst(Operation *op, llvm::function_ref<bool(const WeightUse &)> isWanted) {
  for (const WeightUse &weight : listWeights(op))
    if (isWanted(weight))
      return weight;
  return std::nullopt;
}

std::optional<WeightUse> hone::findWeight(OpOperand &use) {
  return findFirst(use.getOwner(), [&](const WeightUse &weight) { return weight.weight == &use; });
}

bool hone::isLookedUp(OpOperand &use) {
  std::optional<WeightUse> weight = findWeight(use);
  return weight && weight->inputs == WeightInputs::Numbers;
}

std::optional<WeightUse> hone::findLookup(Operation *op) {
  return findFirst(op, [](const WeightUse &weight) { return weight.inputs == WeightInputs::Numbers; });
}

SmallVector<WeightUse> hone::listReaders(OpOperand &rows) {
  SmallVector<WeightUse> readers = listWeights(rows.getOwner());
  llvm::erase_if(readers, [&](const WeightUse &weight) {
    return weight.inputs != WeightInputs::Rows || weight.read != &rows || weight.experts > 0;
  });
  return readers;
}

std::optional<WeightUse> hone::findWriter(Operation *op) {
  return findFirst(
      op, [](const WeightUse &weight) { return weight.outputs == WeightOutputs::Result && weight.experts == 0; });
}

std::optional<WeightUse> hone::findProduct(Operation *op) {
  return findFirst(op, [](const WeightUse &weight) { return weight.isProduct(); });
}

std::optional<InnerGroups> hone::findInnerGroups(Operation *op) {
  auto grouped = dyn_cast_or_null<GroupedOpInterface>(op);
  return grouped ? grouped.getInnerGroups() : std::nullopt;
}

GroupRules hone::detail::getRulesOfRows(Operation *op) {
  OpOperand &rows = op->getOpOperand(0);
  GroupRules rules;
  rules.blockerOfOperands = rules.blockerOfResults = "a norm or rotation has its groups in one row";
  for (int64_t dim = 0, last = cast<RankedTensorType>(rows.get().getType()).getRank() - 1; dim < last; ++dim)
    rules.linked.push_back({{&rows, dim}, {nullptr, dim}});
  return rules;
}
