// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compilation with a report of what became of the weights (docs/compression.md).

#ifndef HONE_LIB_DRIVER_COMPILEREPORT_H
#define HONE_LIB_DRIVER_COMPILEREPORT_H

#include "Compiler.h"
#include "Options/Reports.h"

namespace hone {

/// Runs `compile`, and writes what the options ask for. Fails, after an error, as that does, before it where a report could not
/// be made, and where one cannot be written.
llvm::LogicalResult compileWithReport(const CompileOptions &options, const ReportOptions &report,
                                      mlir::MLIRContext *context);

/// Runs rewriteOnnx, and writes `files` and, where `report` wants it, the summary. Fails, after an error, as that does, and where
/// a file cannot be written.
llvm::LogicalResult rewriteWithReport(const CompileOptions &options, const ReportOptions &report,
                                      mlir::ModuleOp module);

} // namespace hone

#endif // HONE_LIB_DRIVER_COMPILEREPORT_H
