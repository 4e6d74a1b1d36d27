// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites of weights that ONNX can express, on a module of the onnx dialect.

#ifndef HONE_LIB_DRIVER_REWRITEONNX_H
#define HONE_LIB_DRIVER_REWRITEONNX_H

#include "Compiler.h"

namespace hone {

/// Prunes and quantizes a module of the onnx dialect as the options say, if they do, in a raised copy, and brings what became of it
/// back (hone/Export/CompressedModel.h). `options` have a recorder. Fails, after an error, as addPruning, addQuantization and passes do.
llvm::LogicalResult rewriteOnnx(const CompileOptions &options, mlir::ModuleOp module);

} // namespace hone

#endif // HONE_LIB_DRIVER_REWRITEONNX_H
