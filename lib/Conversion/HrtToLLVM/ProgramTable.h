// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program exports: its entries, and the imports that the loader fills.

#ifndef HONE_LIB_CONVERSION_HRTTOLLVM_PROGRAMTABLE_H
#define HONE_LIB_CONVERSION_HRTTOLLVM_PROGRAMTABLE_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// Declares the runtime's service or kernel `name`; `result` is null for none.
mlir::LLVM::LLVMFuncOp declareImport(mlir::OpBuilder &b, mlir::ModuleOp module, llvm::StringRef name,
                                     llvm::ArrayRef<mlir::Type> operands, mlir::Type result);

/// Pointer to a null-terminated constant with the text `text`.
mlir::Value getString(mlir::OpBuilder &b, mlir::Location loc, mlir::ModuleOp module, llvm::StringRef text);

/// Gives every declared import a slot that its calls go through, and adds `hone_program`.
llvm::LogicalResult addProgramTable(mlir::ModuleOp module, llvm::ArrayRef<std::string> entries);

} // namespace hone

#endif // HONE_LIB_CONVERSION_HRTTOLLVM_PROGRAMTABLE_H
