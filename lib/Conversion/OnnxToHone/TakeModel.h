// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several ONNX files in one module.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_TAKEMODEL_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_TAKEMODEL_H

#include "OnnxMatch.h"

namespace hone::raising {

/// The graph of a model as it was imported, or null.
mlir::func::FuncOp getMain(mlir::ModuleOp model);

/// Fails, after an error, where the model has no graph.
LogicalResult checkGraph(mlir::ModuleOp model);

/// The name of a result in the ONNX graph, "" without one.
StringRef getOutputName(mlir::func::FuncOp function, unsigned result);

/// Moves the graph of `from` into `module` as the function `name`, and its parameters, with `prefix` before their names; those that `module`
/// has too, byte for byte, are shared. `from` is left empty. Fails, after an error, where a name is taken or the opsets differ.
FailureOr<mlir::func::FuncOp> takeModel(mlir::ModuleOp module, mlir::ModuleOp from, StringRef prefix, StringRef name);

/// Erases the parameters that nothing reads.
void eraseUnusedParams(mlir::ModuleOp module);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_TAKEMODEL_H
