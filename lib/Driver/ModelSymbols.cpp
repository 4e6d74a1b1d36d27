// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ModelSymbols.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace hone {

/// The names that are referred to from `op`.
static SmallVector<StringAttr> listReferences(Operation *op) {
  SmallVector<StringAttr> names;
  AttrTypeWalker walker;
  walker.addWalk([&](SymbolRefAttr reference) { names.push_back(reference.getRootReference()); });
  op->walk([&](Operation *inner) {
    walker.walk(inner->getAttrDictionary());
    for (Type type : llvm::concat<const Type>(inner->getOperandTypes(), inner->getResultTypes()))
      walker.walk(type);
  });
  return names;
}

void keepFunction(ModuleOp module, StringRef name) {
  SymbolTable symbols(module);
  DenseSet<Operation *> needed{symbols.lookup(name)};
  SmallVector<Operation *> open(needed.begin(), needed.end());
  while (!open.empty())
    for (StringAttr reference : listReferences(open.pop_back_val()))
      if (Operation *other = symbols.lookup(reference); other && needed.insert(other).second)
        open.push_back(other);
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (!needed.contains(&op))
      op.erase();
}

namespace {

/// Names for the symbols of a model in the module of another.
class MovedNames {
public:
  MovedNames(ModuleOp target, StringRef prefix, ArrayRef<RenamedFunction> functions)
      : symbols(target), prefix(prefix), functions(functions) {}

  /// Whether the target has the same, under the same name.
  bool isShared(Operation &op) const {
    auto param = dyn_cast<ParamOp>(op);
    auto other = param ? symbols.lookup<ParamOp>(param.getSymName()) : ParamOp();
    return other && other->getAttrDictionary() == param->getAttrDictionary();
  }

  /// A name that is free.
  void choose(Operation &op) {
    StringAttr name = SymbolTable::getSymbolName(&op);
    std::string free = getWanted(op, name), wanted = free;
    for (unsigned number = 1; symbols.lookup(free); ++number)
      free = wanted + "." + std::to_string(number);
    names[name] = StringAttr::get(op.getContext(), free);
  }

  /// Gives the operations of `other` those names.
  void apply(ModuleOp other) const {
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](FlatSymbolRefAttr reference) -> std::optional<Attribute> {
      auto found = names.find(reference.getAttr());
      return found == names.end() ? std::nullopt : std::optional<Attribute>(FlatSymbolRefAttr::get(found->second));
    });
    replacer.recursivelyReplaceElementsIn(other, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
    for (Operation &op : *other.getBody())
      SymbolTable::setSymbolName(&op, names.at(SymbolTable::getSymbolName(&op)));
  }

private:
  std::string getWanted(Operation &op, StringRef name) const {
    for (const RenamedFunction &function : functions)
      if (name == function.from)
        return function.to.str();
    return (prefix + (isa<StateOp>(op) ? "_" : ".") + name).str();
  }

  SymbolTable symbols;
  StringRef prefix;
  ArrayRef<RenamedFunction> functions;
  llvm::DenseMap<StringAttr, StringAttr> names;
};

} // namespace

void moveSymbols(ModuleOp target, ModuleOp other, StringRef prefix, ArrayRef<RenamedFunction> functions,
                 bool sharesParameters) {
  MovedNames names(target, prefix, functions);
  for (Operation &op : llvm::make_early_inc_range(*other.getBody()))
    if (sharesParameters && names.isShared(op))
      op.erase();
    else
      names.choose(op);
  names.apply(other);
  target.getBody()->getOperations().splice(target.getBody()->end(), other.getBody()->getOperations());
}

} // namespace hone
