// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The analysis starts at the columns that are gone, and finds the rest of their groups as it does where groups are chosen.

#include "hone/Transforms/GroupRemoval.h"

#include "hone/Transforms/GroupAnalysis.h"

#include <numeric>

using namespace mlir;

namespace hone {

using prunable::GroupAnalysis;

/// The size of the largest blocks of neighbours that stay or go together: heads do so, and a layer that splits its rows into
/// heads has to see whole ones.
static int64_t findBlock(ArrayRef<bool> isGone) {
  auto size = static_cast<int64_t>(isGone.size()), block = size, run = int64_t(0);
  for (int64_t i = 0; i < size; ++i) {
    ++run;
    if (i + 1 < size && isGone[i + 1] == isGone[i])
      continue;
    block = std::gcd(block, run);
    run = 0;
  }
  return block;
}

static LogicalResult removeGroups(const StayingInputs &inputs, const prunable::SharedUses &shared,
                                  const SymbolTable &symbols, llvm::MapVector<StringAttr, RankedTensorType> &types) {
  auto param = symbols.lookup<ParamOp>(inputs.param);
  GetParamOp read = shared.reads.find(inputs.param)->second.front();
  SmallVector<bool> isGone(param.getTensorType().getDimSize(inputs.axis), true);
  for (int64_t index : inputs.kept)
    isGone[index] = false;
  int64_t block = findBlock(isGone);
  SmallVector<int32_t, 0> groupOf;
  SmallVector<bool> isGroupGone;
  for (auto [index, gone] : llvm::enumerate(isGone)) {
    groupOf.push_back(static_cast<int32_t>(index / block));
    if (index % block == 0)
      isGroupGone.push_back(gone);
  }
  GroupAnalysis analysis(shared);
  analysis.mark(read.getResult(), inputs.axis, groupOf);
  analysis.run();
  if (!analysis.getBlocker().empty())
    return param.emitError() << "cannot remove some of its inputs: " << analysis.getBlocker();
  cutGroups(analysis, isGroupGone, shared.module);
  for (const auto &[name, groups] : analysis.params) {
    auto cut = symbols.lookup<ParamOp>(name);
    RankedTensorType type = cut.getTensorType();
    SmallVector<int64_t> shape(type.getShape());
    shape[groups.axis] = static_cast<int64_t>(groups.listKept(isGroupGone).size());
    types[name] = RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
    cut.setType(types[name]);
  }
  return success();
}

FailureOr<llvm::MapVector<StringAttr, RankedTensorType>> removeGroups(ModuleOp module, ArrayRef<StayingInputs> inputs) {
  llvm::MapVector<StringAttr, RankedTensorType> types;
  prunable::SharedUses shared(module);
  SymbolTable symbols(module);
  for (const StayingInputs &of : inputs)
    if (failed(removeGroups(of, shared, symbols, types)))
      return failure();
  prunable::updateFunctions(module);
  return types;
}

} // namespace hone
