// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds hone_signature (include/hone/runtime/signature.h) in the LLVM dialect.

#include "hone/Conversion/ProgramSignature.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace hone {

static LLVM::GlobalOp addConstant(OpBuilder &b, ModuleOp module, StringRef name, Type element, size_t count,
                                  Attribute value) {
  return LLVM::GlobalOp::create(b, module.getLoc(), LLVM::LLVMArrayType::get(element, count), /*isConstant=*/true,
                                LLVM::Linkage::Internal, name, value);
}

void addProgramSignature(ModuleOp module, StringRef text, ArrayRef<hone_addresses> addresses) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Location loc = module.getLoc();
  std::string bytes = text.str() + '\0';
  LLVM::GlobalOp lines =
      addConstant(b, module, "hone_signature_text", b.getI8Type(), bytes.size(), b.getStringAttr(bytes));
  SmallVector<int64_t> words; // all fields of a row have 64 bits
  for (const hone_addresses &row : addresses)
    words.append(
        {static_cast<int64_t>(row.offset), static_cast<int64_t>(row.bytes), row.bound, static_cast<int64_t>(row.rule)});
  LLVM::GlobalOp rows;
  if (!words.empty())
    rows = addConstant(b, module, "hone_addresses", b.getI64Type(), words.size(), b.getI64TensorAttr(words));
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), {pointer, b.getI64Type(), pointer});
  // Not constant: the linker relocates its pointers at load.
  auto signature = LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/false, LLVM::Linkage::External, "hone_signature",
                                          Attribute());
  b.createBlock(&signature.getInitializerRegion());
  Value fields[] = {
      LLVM::AddressOfOp::create(b, loc, lines),
      LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(static_cast<int64_t>(addresses.size()))),
      rows ? LLVM::AddressOfOp::create(b, loc, rows).getResult() : LLVM::ZeroOp::create(b, loc, pointer).getResult()};
  Value value = LLVM::UndefOp::create(b, loc, type);
  for (auto [i, field] : llvm::enumerate(fields))
    value = LLVM::InsertValueOp::create(b, loc, value, field, static_cast<int64_t>(i));
  LLVM::ReturnOp::create(b, loc, value);
}

} // namespace hone
