// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a command reads, and that its outputs are none of it.

#ifndef HONE_LIB_DRIVER_OUTPUTS_H
#define HONE_LIB_DRIVER_OUTPUTS_H

#include "Compiler.h"

#include "hone/io/output.h"

namespace hone {

/// The models of `options`, the files that `modules`, which were read from them, refer to, and what else the options name.
io::InputFiles listInputs(const CompileOptions &options, llvm::ArrayRef<mlir::ModuleOp> modules);

/// Fails, after an error, where an output that the options name is among `inputs`, or a folder with one of them in it.
llvm::LogicalResult checkOutputs(const CompileOptions &options, const io::InputFiles &inputs, mlir::Location loc);

} // namespace hone

#endif // HONE_LIB_DRIVER_OUTPUTS_H
