// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The branch of a file's graph is found from the weight that its raised form ends with.

#include "hone/Transforms/LayerRemoval.h"

#include "ResidualBranches.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/GroupAnalysis.h"

using namespace mlir;

namespace hone {

using prune::Branch;

SmallVector<StringAttr> listBranchEnds(ModuleOp module) {
  SmallVector<StringAttr> ends;
  for (const prune::ResidualLayer &layer : prune::findLayers(module, MeasuredInputs()))
    llvm::append_range(ends, layer.weights);
  return ends;
}

/// The product with what `read` reads, or null.
static Operation *findProduct(GetParamOp read) {
  Value value = read.getResult();
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (!onnxir::isOnnxOp(user))
      return nullptr;
    StringRef type = onnxir::getOpType(user);
    if (type == "MatMul" || type == "Gemm" || type == "MatMulNBits")
      return user->getOperand(1) == value ? user : nullptr;
    if ((type != "Transpose" && type != "Cast" && type != "Identity") || user->getNumResults() != 1)
      return nullptr;
    value = user->getResult(0);
  }
  return nullptr;
}

static FailureOr<Branch> findBranch(ParamOp param, const prunable::SharedUses &shared) {
  auto error = [&] {
    return param.emitError() << "cannot remove the layer that ends with " << param.getSymName() << ": ";
  };
  auto reads = shared.reads.find(param.getSymNameAttr());
  Operation *product =
      reads != shared.reads.end() && reads->second.size() == 1 ? findProduct(reads->second.front()) : nullptr;
  if (!product)
    return error() << "the file reads it in another form";
  Branch branch = prune::findBranch(product, param.getSymNameAttr());
  if (branch.blocker.empty())
    branch.blocker = prune::getPastsBlocker(branch);
  if (!branch.blocker.empty())
    return error() << branch.blocker;
  return branch;
}

LogicalResult removeBranches(ModuleOp module, ArrayRef<StringAttr> weights) {
  prunable::SharedUses shared(module);
  SymbolTable symbols(module);
  SmallVector<Branch, 0> branches;
  llvm::SetVector<StringAttr> params;
  for (StringAttr name : weights) {
    auto param = symbols.lookup<ParamOp>(name);
    if (!param)
      return emitError(module.getLoc()) << "cannot remove the layer that ends with " << name.getValue()
                                        << ": the file has no weight of that name";
    FailureOr<Branch> branch = findBranch(param, shared);
    if (failed(branch))
      return failure();
    auto noteParam = [&](Operation *op) {
      if (auto get = dyn_cast_or_null<GetParamOp>(op))
        params.insert(get.getNameAttr().getAttr());
    };
    llvm::for_each(branch->owned, noteParam);
    for (Value operand : branch->add->getOperands()) // of a norm
      noteParam(operand.getDefiningOp());
    branches.push_back(std::move(*branch));
  }
  prune::removeBranches(llvm::map_to_vector(branches, [](const Branch &branch) { return &branch; }), module);
  module.walk([&](GetParamOp get) {
    if (get->use_empty() && params.contains(get.getNameAttr().getAttr()))
      get.erase();
  });
  prunable::SharedUses left(module);
  for (StringAttr name : params)
    if (!left.reads.contains(name))
      symbols.erase(symbols.lookup(name));
  return success();
}

} // namespace hone
