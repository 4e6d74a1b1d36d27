// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone inspect --masks`: which elements of weights are kept, as text.

#ifndef HONE_LIB_DRIVER_MASKS_H
#define HONE_LIB_DRIVER_MASKS_H

#include "Compiler.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/CommandLine.h"

namespace hone {

/// Options of `hone inspect` about masks.
struct MaskFlags {
  explicit MaskFlags(llvm::cl::SubCommand &command);

  llvm::cl::opt<bool> masks;
  llvm::cl::opt<std::string> weight, rows, columns;
  llvm::cl::opt<int64_t> group;
};

/// Prints a line for each matrix of the model or artefact at `path`, or draws a block of the one that the flags name, to
/// standard output.
llvm::LogicalResult inspectMasks(llvm::StringRef path, const MaskFlags &flags, const ReadOptions &options,
                                 mlir::MLIRContext *context);

} // namespace hone

#endif // HONE_LIB_DRIVER_MASKS_H
