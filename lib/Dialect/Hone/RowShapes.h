//===- RowShapes.h - results that have the leading dimensions of an operand ---------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For operations on the last dimension: products, norms, feed-forward blocks.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_DIALECT_HONE_ROWSHAPES_H
#define HONE_LIB_DIALECT_HONE_ROWSHAPES_H

#include "hone/Dialect/Hone/HoneShapes.h"

namespace hone {

/// All dimensions of operand `operand`.
inline ResultDims getSameDims(mlir::TypeRange operands, unsigned operand) {
  ResultDims dims;
  int64_t rank = llvm::cast<mlir::RankedTensorType>(operands[operand]).getRank();
  for (int64_t i = 0; i < rank; ++i)
    dims.push_back({operand, i});
  return dims;
}

/// The dimensions of operand `operand` with `last` in place of its last one; fails where it has none.
inline mlir::FailureOr<ResultDims> getRowDims(mlir::TypeRange operands, unsigned operand, ResultDim last) {
  ResultDims dims = getSameDims(operands, operand);
  if (dims.empty())
    return llvm::failure();
  dims.back() = last;
  return dims;
}

} // namespace hone

#endif // HONE_LIB_DIALECT_HONE_ROWSHAPES_H
