// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which values may be views of the same buffer.

#ifndef HONE_LIB_CONVERSION_MEMREFTOHRT_ALIASES_H
#define HONE_LIB_CONVERSION_MEMREFTOHRT_ALIASES_H

#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"

namespace hone {

/// Upstream's analysis follows regions and what says that it is a view; memref.transpose does not. Here every memref that an
/// operation makes may be a view of all that it takes, unless it is memory that the operation allocates.
class Aliases {
public:
  explicit Aliases(mlir::Operation *function) : views(function) {}

  /// `buffer` and all that may be views of it.
  llvm::SetVector<mlir::Value> getViews(mlir::Value buffer) const;

  /// All that may share memory with `buffer`.
  llvm::SetVector<mlir::Value> getAll(mlir::Value buffer) const;

private:
  mlir::BufferViewFlowAnalysis views;
};

} // namespace hone

#endif // HONE_LIB_CONVERSION_MEMREFTOHRT_ALIASES_H
