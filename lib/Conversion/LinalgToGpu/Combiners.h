// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What joins partial results of a reduction, and which operands are read as vectors.

#ifndef HONE_LIB_CONVERSION_LINALGTOGPU_COMBINERS_H
#define HONE_LIB_CONVERSION_LINALGTOGPU_COMBINERS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace hone {

/// For each output, the operation that joins what was reduced so far with the next term; fails where that is not one
/// operation with a neutral element, on values that lanes can exchange (f32, f64, i32).
llvm::FailureOr<llvm::SmallVector<mlir::Operation *>> getCombiners(mlir::linalg::LinalgOp op);

/// Whether `operand` is contiguous along `dim`, of elements that vectors hold.
bool isVectorized(mlir::linalg::LinalgOp op, mlir::OpOperand &operand, unsigned dim);

} // namespace hone

#endif // HONE_LIB_CONVERSION_LINALGTOGPU_COMBINERS_H
