// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone inspect` of a model: its interface, its bytes, what raising recognised, and what it left.

#ifndef HONE_LIB_DRIVER_INSPECT_H
#define HONE_LIB_DRIVER_INSPECT_H

#include "Compiler.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"

namespace hone {

/// Prints what is in the model at `path`, after raising, to standard output.
llvm::LogicalResult inspectModel(llvm::StringRef path, bool json, const ReadOptions &options,
                                 mlir::MLIRContext *context);

} // namespace hone

#endif // HONE_LIB_DRIVER_INSPECT_H
