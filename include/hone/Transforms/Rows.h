// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where rows of a tensor go: what follows the residual stream, and what norms make of it, asks these questions.

#ifndef HONE_TRANSFORMS_ROWS_H
#define HONE_TRANSFORMS_ROWS_H

#include "hone/Dialect/Hone/HoneOps.h"

namespace hone {

/// Whether `op` reads no more than the sizes of what it takes.
bool readsSizes(mlir::Operation *op);

/// Whether `op` only passes rows of its first operand on, all or some of them, as the same elements.
bool passesRowsOn(mlir::Operation *op);

/// Calls `visit` for each use of `rows`, but for those that read sizes alone, with the weights that all rows are multiplied with there;
/// none where something else happens to them. Where `looksThrough`, uses of what passes rows on take the place of it.
void forEachReader(mlir::Value rows, bool looksThrough,
                   llvm::function_ref<void(mlir::OpOperand &, llvm::ArrayRef<WeightUse>)> visit);

} // namespace hone

#endif // HONE_TRANSFORMS_ROWS_H
