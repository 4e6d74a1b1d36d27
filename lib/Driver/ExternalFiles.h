// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The files that `#hone.external` names, which lie beside the file that holds the IR.

#ifndef HONE_LIB_DRIVER_EXTERNALFILES_H
#define HONE_LIB_DRIVER_EXTERNALFILES_H

#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// Replaces the names in `module`, which was read from `path`, by those from the current folder. They have to keep ONNX's rules for
/// external data, or only be regular files where `anywhere` is true: relative, in the folder of `path`, and reached without a link.
/// Fails after an error.
llvm::LogicalResult resolveExternalFiles(mlir::ModuleOp module, llvm::StringRef path, bool anywhere);

/// Runs `action` while the names in `module` are those from the folder of `path`, which is to hold the IR, and absolute for files
/// that do not lie in it.
llvm::LogicalResult withNamesFrom(mlir::ModuleOp module, llvm::StringRef path,
                                  llvm::function_ref<llvm::LogicalResult()> action);

/// Warns where `module`, written to `path`, names a file by an absolute path, which only --allow-external-paths reads.
void warnAboutNames(mlir::ModuleOp module, llvm::StringRef path);

} // namespace hone

#endif // HONE_LIB_DRIVER_EXTERNALFILES_H
