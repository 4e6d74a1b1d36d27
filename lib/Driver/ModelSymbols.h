// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The symbols of one model in the module of another.

#ifndef HONE_LIB_DRIVER_MODELSYMBOLS_H
#define HONE_LIB_DRIVER_MODELSYMBOLS_H

#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// Leaves the function `name` of `module`, which there is, and what it refers to.
void keepFunction(mlir::ModuleOp module, llvm::StringRef name);

/// A function, and what it is called in another module.
struct RenamedFunction {
  llvm::StringRef from, to;
};

/// Moves all of `other` to the end of `target`. Functions get the names that `functions` says; other symbols, and functions that are not
/// there, get `prefix` before their names, and numbers after them where these are taken. With `sharesParameters`, parameters that
/// are the same in both, with the same name, are there once.
void moveSymbols(mlir::ModuleOp target, mlir::ModuleOp other, llvm::StringRef prefix,
                 llvm::ArrayRef<RenamedFunction> functions, bool sharesParameters);

} // namespace hone

#endif // HONE_LIB_DRIVER_MODELSYMBOLS_H
