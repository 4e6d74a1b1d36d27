// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs and parameters of another file, moved into a module.

#include "TakeModel.h"

#include "hone/Dialect/Hone/ParamBytes.h"

using namespace mlir;

namespace hone::raising {

func::FuncOp getMain(ModuleOp model) { return model.lookupSymbol<func::FuncOp>("main"); }

LogicalResult checkGraph(ModuleOp model) {
  return getMain(model) ? success() : model.emitError() << "expected a model with a graph, but there is none";
}

StringRef getOutputName(func::FuncOp function, unsigned result) {
  auto name = function.getResultAttrOfType<StringAttr>(result, onnxir::kNameAttr);
  return name ? name.getValue() : StringRef();
}

/// One module has one version of each domain.
static LogicalResult addOpsets(ModuleOp module, ModuleOp from) {
  auto own = module->getAttrOfType<DictionaryAttr>(onnxir::kOpsetsAttr);
  auto others = from->getAttrOfType<DictionaryAttr>(onnxir::kOpsetsAttr);
  NamedAttrList all(own);
  for (NamedAttribute domain : others ? others.getValue() : ArrayRef<NamedAttribute>())
    if (Attribute before = all.set(domain.getName(), domain.getValue()); before && before != domain.getValue())
      return from.emitError() << "expected opset " << cast<IntegerAttr>(before).getInt() << " of "
                              << domain.getName().getValue() << ", that of the other file, but got "
                              << cast<IntegerAttr>(domain.getValue()).getInt();
  module->setAttr(onnxir::kOpsetsAttr, all.getDictionary(module.getContext()));
  return success();
}

/// Lets readers of `param` read a parameter of the module with the same bytes, where there is one: exporters write an embedding
/// that several models have into each file.
static LogicalResult shareParam(ModuleOp module, ParamOp param) {
  FailureOr<SmallVector<StoredBytes>> bytes = openPlanes(param);
  if (failed(bytes))
    return failure();
  for (ParamOp other : module.getOps<ParamOp>()) {
    if (other.getTensorType() != param.getTensorType())
      continue;
    FailureOr<SmallVector<StoredBytes>> others = openPlanes(other);
    if (failed(others))
      return failure();
    auto isSame = [](const auto &pair) { return std::get<0>(pair).get() == std::get<1>(pair).get(); };
    if (!llvm::all_of(llvm::zip_equal(*bytes, *others), isSame))
      continue;
    auto parent = param->getParentOfType<ModuleOp>();
    if (failed(SymbolTable::replaceAllSymbolUses(param, other.getSymNameAttr(), parent)))
      return failure();
    param.erase();
    return success();
  }
  return success();
}

FailureOr<func::FuncOp> takeModel(ModuleOp module, ModuleOp from, StringRef prefix, StringRef name) {
  if (failed(addOpsets(module, from)))
    return failure();
  func::FuncOp function = getMain(from);
  SymbolTable own(from);
  for (ParamOp param : llvm::make_early_inc_range(from.getOps<ParamOp>())) {
    // First, so that no name of the module's parameters is one of this model's.
    auto fresh = StringAttr::get(from.getContext(), prefix + param.getSymName());
    if (failed(own.rename(param, fresh)) || failed(shareParam(module, param)))
      return failure();
  }
  SymbolTable symbols(module);
  function.setSymName(name);
  for (Operation &op : llvm::make_early_inc_range(*from.getBody())) {
    if (symbols.lookup(SymbolTable::getSymbolName(&op)))
      return op.emitError() << "expected a model without a symbol of this name: " << SymbolTable::getSymbolName(&op);
    op.moveBefore(module.getBody(), module.getBody()->end());
  }
  return function;
}

void eraseUnusedParams(ModuleOp module) {
  llvm::DenseSet<StringAttr> used;
  module.walk([&](GetParamOp read) { used.insert(read.getNameAttr().getAttr()); });
  for (ParamOp param : llvm::make_early_inc_range(module.getOps<ParamOp>()))
    if (!used.contains(param.getSymNameAttr()))
      param.erase();
}

} // namespace hone::raising
