// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program says of itself to the loader.

#ifndef HONE_CONVERSION_PROGRAMSIGNATURE_H
#define HONE_CONVERSION_PROGRAMSIGNATURE_H

#include "hone/runtime/signature.h"

#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// Adds `hone_signature` (hone/runtime/signature.h) to a program in the LLVM dialect.
void addProgramSignature(mlir::ModuleOp module, llvm::StringRef text, llvm::ArrayRef<hone_addresses> addresses);

} // namespace hone

#endif // HONE_CONVERSION_PROGRAMSIGNATURE_H
