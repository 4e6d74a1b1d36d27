// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options that ask for rewrites, as passes.

#ifndef HONE_LIB_DRIVER_REWRITES_H
#define HONE_LIB_DRIVER_REWRITES_H

#include "Compiler.h"

namespace hone {

/// Adds the passes that the options stand for. Fails, after an error, where an option has a value that is not supported.
llvm::LogicalResult addRewrites(const CompileOptions &options, mlir::OpPassManager &pm, mlir::Location loc);

/// Prunes a module of the onnx dialect as the options say, if they do: what becomes of the parameters of a raised copy, they
/// become. Warns of those that the module does not have in the same form. Fails, after an error, as addRewrites and passes do.
llvm::LogicalResult pruneOnnx(const CompileOptions &options, mlir::ModuleOp module);

} // namespace hone

#endif // HONE_LIB_DRIVER_REWRITES_H
