// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds hone_program (include/hone/runtime/program.h) in the LLVM dialect.

#include "ProgramTable.h"

#include "hone/runtime/program.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace hone {

/// Marks a declaration whose calls go through the import table; the value is the name the loader looks up.
static constexpr llvm::StringLiteral kImportAttr = "hone.import";

LLVM::LLVMFuncOp declareImport(OpBuilder &b, ModuleOp module, StringRef name, ArrayRef<Type> operands, Type result) {
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  auto type = LLVM::LLVMFunctionType::get(result ? result : LLVM::LLVMVoidType::get(b.getContext()), operands);
  auto function = LLVM::LLVMFuncOp::create(b, module.getLoc(), name, type);
  function->setAttr(kImportAttr, b.getStringAttr(name));
  return function;
}

static LLVM::GlobalOp createString(OpBuilder &b, ModuleOp module, StringRef symbol, StringRef text) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  std::string bytes = text.str() + '\0';
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  return LLVM::GlobalOp::create(b, module.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Private, symbol,
                                b.getStringAttr(bytes));
}

Value getString(OpBuilder &b, Location loc, ModuleOp module, StringRef text) {
  std::string symbol = "message." + std::to_string(static_cast<size_t>(llvm::hash_value(text)));
  for (unsigned i = 0;; ++i) { // equal texts share a constant; a collision of hashes does not
    std::string candidate = i ? symbol + "." + std::to_string(i) : symbol;
    auto global = module.lookupSymbol<LLVM::GlobalOp>(candidate);
    if (!global)
      global = createString(b, module, candidate, text);
    else if (cast<StringAttr>(global.getValueAttr()).getValue().drop_back() != text)
      continue;
    return LLVM::AddressOfOp::create(b, loc, global);
  }
}

namespace {

/// Builds constant structs as globals with initializer regions.
class TableBuilder {
public:
  explicit TableBuilder(ModuleOp module) : module(module), b(module.getContext()), loc(module.getLoc()) {}

  void addProgram(ArrayRef<LLVM::LLVMFuncOp> imports, ArrayRef<std::string> entries);
  LLVM::GlobalOp addSlot(StringRef name);

private:
  using Fields = llvm::function_ref<SmallVector<Value>()>;
  Type pointer() { return LLVM::LLVMPointerType::get(b.getContext()); }
  Value address(LLVM::GlobalOp global) { return LLVM::AddressOfOp::create(b, loc, global); }
  Value word(int32_t value) { return LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(value)); }
  /// A global array or struct whose elements `fields` builds inside its initializer.
  LLVM::GlobalOp addAggregate(StringRef name, Type type, LLVM::Linkage linkage, Fields fields);
  LLVM::GlobalOp addPointers(StringRef name, Fields fields, size_t count);

  ModuleOp module;
  OpBuilder b;
  Location loc;
};

} // namespace

LLVM::GlobalOp TableBuilder::addAggregate(StringRef name, Type type, LLVM::Linkage linkage, Fields fields) {
  b.setInsertionPointToEnd(module.getBody());
  // Not constant: the linker relocates its pointers at load.
  auto global = LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/false, linkage, name, Attribute());
  b.createBlock(&global.getInitializerRegion());
  SmallVector<Value> values = fields();
  Value aggregate = LLVM::UndefOp::create(b, loc, type);
  for (auto [i, value] : llvm::enumerate(values))
    aggregate = LLVM::InsertValueOp::create(b, loc, aggregate, value, static_cast<int64_t>(i));
  LLVM::ReturnOp::create(b, loc, aggregate);
  return global;
}

LLVM::GlobalOp TableBuilder::addPointers(StringRef name, Fields fields, size_t count) {
  return addAggregate(name, LLVM::LLVMArrayType::get(pointer(), count), LLVM::Linkage::Internal, fields);
}

LLVM::GlobalOp TableBuilder::addSlot(StringRef name) {
  return addAggregate(("slot." + name).str(), LLVM::LLVMArrayType::get(pointer(), 1), LLVM::Linkage::Internal,
                      [&] { return SmallVector<Value>{LLVM::ZeroOp::create(b, loc, pointer())}; });
}

void TableBuilder::addProgram(ArrayRef<LLVM::LLVMFuncOp> imports, ArrayRef<std::string> entries) {
  SmallVector<std::pair<LLVM::GlobalOp, LLVM::GlobalOp>> importRows;
  for (LLVM::LLVMFuncOp import : imports) {
    StringRef name = import->getAttrOfType<StringAttr>(kImportAttr).getValue();
    importRows.emplace_back(createString(b, module, ("name." + name).str(), name),
                            module.lookupSymbol<LLVM::GlobalOp>(("slot." + import.getName()).str()));
  }
  SmallVector<std::pair<LLVM::GlobalOp, LLVM::LLVMFuncOp>> entryRows;
  for (const std::string &entry : entries)
    entryRows.emplace_back(createString(b, module, "entry." + entry, entry),
                           module.lookupSymbol<LLVM::LLVMFuncOp>(entry));
  auto importTable = addPointers(
      "hone_imports",
      [&] {
        SmallVector<Value> values;
        for (auto [name, slot] : importRows)
          values.append({address(name), address(slot)});
        return values;
      },
      2 * importRows.size());
  auto entryTable = addPointers(
      "hone_entries",
      [&] {
        SmallVector<Value> values;
        for (auto [name, function] : entryRows)
          values.append({address(name), LLVM::AddressOfOp::create(b, loc, function)});
        return values;
      },
      2 * entryRows.size());
  Type i32 = b.getI32Type(), ptr = pointer();
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), {i32, i32, ptr, i32, i32, ptr});
  addAggregate("hone_program", type, LLVM::Linkage::External, [&] {
    return SmallVector<Value>{word(HONE_PROGRAM_ABI_VERSION),
                              word(importRows.size()),
                              address(importTable),
                              word(entryRows.size()),
                              word(0),
                              address(entryTable)};
  });
}

/// Calls of `import` load the function from its slot.
static void callThroughSlot(LLVM::LLVMFuncOp import, LLVM::GlobalOp slot) {
  auto module = import->getParentOfType<ModuleOp>();
  auto uses = SymbolTable::getSymbolUses(import, module);
  for (SymbolTable::SymbolUse use : *uses) {
    auto call = cast<LLVM::CallOp>(use.getUser());
    OpBuilder b(call);
    Value address = LLVM::AddressOfOp::create(b, call.getLoc(), slot);
    Value function = LLVM::LoadOp::create(b, call.getLoc(), LLVM::LLVMPointerType::get(b.getContext()), address);
    SmallVector<Value> operands{function};
    llvm::append_range(operands, call.getArgOperands());
    auto indirect = LLVM::CallOp::create(b, call.getLoc(), import.getFunctionType(), operands);
    call->replaceAllUsesWith(indirect->getResults());
    call.erase();
  }
}

LogicalResult addProgramTable(ModuleOp module, ArrayRef<std::string> entries) {
  // The allocation functions that memref's lowering declares are services under other names.
  const std::pair<StringRef, StringRef> renamed[] = {{"_mlir_memref_to_llvm_alloc", "hone_rt_alloc"},
                                                     {"_mlir_memref_to_llvm_free", "hone_rt_free"}};
  for (auto [symbol, name] : renamed)
    if (auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol))
      function->setAttr(kImportAttr, StringAttr::get(module.getContext(), name));
  TableBuilder table(module);
  SmallVector<LLVM::LLVMFuncOp> imports;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(kImportAttr))
      imports.push_back(function);
  llvm::sort(imports, [](LLVM::LLVMFuncOp a, LLVM::LLVMFuncOp b) { return a.getName() < b.getName(); });
  for (LLVM::LLVMFuncOp import : imports)
    callThroughSlot(import, table.addSlot(import.getName()));
  table.addProgram(imports, entries);
  for (LLVM::LLVMFuncOp import : imports)
    import.erase();
  for (const std::string &entry : entries)
    module.lookupSymbol<LLVM::LLVMFuncOp>(entry).setLinkage(LLVM::Linkage::Internal);
  return success();
}

} // namespace hone
