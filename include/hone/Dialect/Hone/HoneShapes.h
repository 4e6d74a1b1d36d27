//===- HoneShapes.h - how the shape of a result follows from its operands -----------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every computing operation says for each dimension of its result which operand's dimension it is; type inference, the
// check of a written type and the shape in IR all come from that.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_HONESHAPES_H
#define HONE_DIALECT_HONE_HONESHAPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

namespace hone {

/// Dimension `dim` of operand number `operand`.
struct ResultDim {
  unsigned operand;
  int64_t dim;
};
using ResultDims = llvm::SmallVector<ResultDim, 4>;

namespace detail {

/// Appends the tensor type of the given dimensions with the elements of operand `elementOperand`.
llvm::LogicalResult inferType(llvm::StringRef op, std::optional<mlir::Location> location, mlir::TypeRange operands,
                              const mlir::FailureOr<ResultDims> &dims, unsigned elementOperand,
                              llvm::SmallVectorImpl<mlir::Type> &types);

/// Whether the types agree pairwise in elements, encoding, rank and every size that both know.
bool areCompatible(mlir::TypeRange inferred, mlir::TypeRange actual);

/// The sizes of the next result of `op`, of which `shapes` has the earlier ones, as constants or `tensor.dim` of its operands.
llvm::LogicalResult reifyShape(mlir::OpBuilder &builder, mlir::Operation *op, const mlir::FailureOr<ResultDims> &dims,
                               mlir::ReifiedRankedShapedTypeDims &shapes);

} // namespace detail
} // namespace hone

#endif // HONE_DIALECT_HONE_HONESHAPES_H
