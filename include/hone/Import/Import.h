// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads an ONNX file into the `onnx` dialect.

#ifndef HONE_IMPORT_IMPORT_H
#define HONE_IMPORT_IMPORT_H

#include "hone/Import/Limits.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace hone {

/// Reads the model at `path`, checks it with libonnx, inlines its functions, infers shapes, and returns a module with
/// one `func.func @main` that has the graph's signature. Initializers become `hone.param`s (small and integer ones
/// `onnx.Constant`s); external data is referenced by file, offset and size and never read.
/// A model beyond `limits` is refused before memory is taken for it. One of an older opset of the default domain than `leastOpset` is converted.
/// Failures are diagnostics at the node concerned, and a null module.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(llvm::StringRef path, mlir::MLIRContext *context,
                                             const Limits &limits = Limits(), int64_t leastOpset = 0);

/// Whether the schema of `op` defines a function, for any opset, attributes and operand types.
bool hasFunction(mlir::Operation *op);

/// Replaces `op`, an operator without a subgraph, by the function body that its schema defines for its opset, attributes
/// and operand types, and operators in that body by theirs, except where `isPrimitive` says of an operation's name that it
/// stays. False, and nothing changed, if there is no such function; failure after a diagnostic.
mlir::FailureOr<bool> expandFunction(mlir::Operation *op, llvm::function_ref<bool(llvm::StringRef)> isPrimitive);

} // namespace hone

#endif // HONE_IMPORT_IMPORT_H
