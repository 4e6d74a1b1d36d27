// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entries are independent but for tables and the slots of imports, and nearly all of a program's code.

#include "EntryParts.h"

#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

namespace hone {
namespace {

using llvm::GlobalValue;

class Splitter {
public:
  explicit Splitter(llvm::Module &module) : module(module) {}

  /// What only this function reaches, and it itself, is a part.
  void addPart(llvm::Function &entry);
  std::vector<llvm::SmallString<0>> split();

private:
  unsigned partOf(const GlobalValue &value) const { return parts.lookup(&value); }
  void share(GlobalValue &value);
  void shareAcrossParts();

  llvm::Module &module;
  llvm::DenseMap<const GlobalValue *, unsigned> parts; // 0 where it is in none
  unsigned count = 1;
};

} // namespace

/// Calls `visit` for each global value that the constant `value` is or has.
template <typename Visit> static void forEachGlobal(llvm::Value *value, Visit visit) {
  if (auto *global = llvm::dyn_cast<GlobalValue>(value))
    return visit(*global);
  if (auto *constant = llvm::dyn_cast<llvm::Constant>(value))
    for (llvm::Value *operand : constant->operands())
      forEachGlobal(operand, visit);
}

template <typename Visit> static void forEachGlobalIn(llvm::Function &function, Visit visit) {
  for (llvm::Instruction &instruction : llvm::instructions(function))
    for (llvm::Value *operand : instruction.operands())
      forEachGlobal(operand, visit);
}

void Splitter::addPart(llvm::Function &entry) {
  unsigned part = count++;
  llvm::SmallVector<llvm::Function *> pending = {&entry};
  while (!pending.empty()) {
    llvm::Function *function = pending.pop_back_val();
    if (function->isDeclaration() || !function->hasLocalLinkage())
      continue;
    auto [known, isNew] = parts.try_emplace(function, part);
    if (!isNew && (known->second == part || known->second == 0))
      continue;
    known->second = isNew ? part : 0; // what two parts reach, and what it reaches, is in neither
    forEachGlobalIn(*function, [&](GlobalValue &value) {
      if (auto *callee = llvm::dyn_cast<llvm::Function>(&value))
        pending.push_back(callee);
    });
  }
}

void Splitter::share(GlobalValue &value) {
  if (!value.hasLocalLinkage())
    return;
  if (!value.hasName())
    value.setName("hone.shared");
  value.setLinkage(GlobalValue::ExternalLinkage);
  value.setVisibility(GlobalValue::HiddenVisibility);
}

void Splitter::shareAcrossParts() {
  for (llvm::Function &function : module)
    forEachGlobalIn(function, [&](GlobalValue &value) {
      if (partOf(value) != partOf(function))
        share(value);
    });
  for (llvm::GlobalVariable &variable : module.globals())
    if (variable.hasInitializer())
      forEachGlobal(variable.getInitializer(), [&](GlobalValue &value) {
        if (partOf(value) != 0)
          share(value);
      });
}

std::vector<llvm::SmallString<0>> Splitter::split() {
  shareAcrossParts();
  std::vector<llvm::SmallString<0>> bitcode(count);
  for (unsigned part = 0; part < count; ++part) {
    llvm::ValueToValueMapTy map;
    auto isInPart = [&](const GlobalValue *value) { return partOf(*value) == part; };
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module, map, isInPart);
    for (llvm::Function &function : llvm::make_early_inc_range(*copy))
      if (function.isDeclaration() && function.use_empty())
        function.eraseFromParent();
    for (llvm::GlobalVariable &variable : llvm::make_early_inc_range(copy->globals()))
      if (variable.isDeclaration() && variable.use_empty())
        variable.eraseFromParent();
    llvm::raw_svector_ostream stream(bitcode[part]);
    llvm::WriteBitcodeToFile(*copy, stream);
  }
  return bitcode;
}

std::vector<llvm::SmallString<0>> splitByEntry(llvm::Module &module, llvm::StringRef table) {
  Splitter splitter(module);
  llvm::SmallVector<llvm::Function *> entries;
  if (llvm::GlobalVariable *variable = module.getNamedGlobal(table); variable && variable->hasInitializer())
    forEachGlobal(variable->getInitializer(), [&](GlobalValue &value) {
      if (auto *entry = llvm::dyn_cast<llvm::Function>(&value))
        entries.push_back(entry);
    });
  for (llvm::Function *entry : llvm::drop_begin(entries, entries.empty() ? 0 : 1))
    splitter.addPart(*entry);
  return splitter.split();
}

} // namespace hone
