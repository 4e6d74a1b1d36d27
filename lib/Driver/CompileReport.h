// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone compile` with a report of what became of the weights, and `hone report` (docs/compression.md).

#ifndef HONE_LIB_DRIVER_COMPILEREPORT_H
#define HONE_LIB_DRIVER_COMPILEREPORT_H

#include "Compiler.h"

#include "llvm/Support/CommandLine.h"

namespace hone {

struct ReportOptions {
  std::vector<std::string> files; // .html or .json
  std::string tokens;             // .npy to measure perplexity on, before and after, or empty
  int64_t window = 512;
  bool summary = false; // say on standard error what a compression did
};

/// The option of commands that compress.
struct ReportFileFlags {
  explicit ReportFileFlags(llvm::cl::SubCommand &command);

  llvm::cl::list<std::string> files;
};

/// Options of `hone compile` about reports.
struct ReportFlags : ReportFileFlags {
  explicit ReportFlags(llvm::cl::SubCommand &command);
  /// The summary only where the command is not `quiet`.
  ReportOptions get(bool isQuiet) const;

  llvm::cl::opt<std::string> tokens;
  llvm::cl::opt<int64_t> window;
};

/// Runs `compile`, and writes what the options ask for. Fails, after an error, as that does, before it where a report could not
/// be made, and where one cannot be written.
llvm::LogicalResult compileWithReport(const CompileOptions &options, const ReportOptions &report,
                                      mlir::MLIRContext *context);

/// Runs rewriteOnnx, and writes `files` and, where `report` wants it, the summary. Fails, after an error, as that does, and where
/// a file cannot be written.
llvm::LogicalResult rewriteWithReport(const CompileOptions &options, const ReportOptions &report,
                                      mlir::ModuleOp module);

/// Puts the reports at `inputs` beside each other: as text to standard output, or as a page where `output` names one.
llvm::LogicalResult compareReports(llvm::ArrayRef<std::string> inputs, llvm::StringRef output,
                                   mlir::MLIRContext *context);

} // namespace hone

#endif // HONE_LIB_DRIVER_COMPILEREPORT_H
