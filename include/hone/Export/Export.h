// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the `onnx` dialect back as an ONNX file.

#ifndef HONE_EXPORT_EXPORT_H
#define HONE_EXPORT_EXPORT_H

#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// What follows the name of a model in that of the file with its larger parameters.
constexpr llvm::StringLiteral kDataEnding = ".data";

/// Writes `@main` of `module`, which holds operations of the `onnx` dialect and parameters only, to `path`. Parameters that
/// lie in other files, and all of them where the model would pass a protobuf's limit, go to `path`.data. The files appear
/// by rename. Before each parameter that goes to the second file `onWeight` hears how many of how many are there, and its name.
/// Failures are diagnostics at the operation concerned.
llvm::LogicalResult exportOnnx(mlir::ModuleOp module, llvm::StringRef path,
                               llvm::function_ref<void(int64_t done, int64_t total, llvm::StringRef name)> onWeight);

} // namespace hone

#endif // HONE_EXPORT_EXPORT_H
