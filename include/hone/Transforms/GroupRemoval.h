// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prunable groups that are chosen already: a smaller graph without them.

#ifndef HONE_TRANSFORMS_GROUPREMOVAL_H
#define HONE_TRANSFORMS_GROUPREMOVAL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/MapVector.h"

namespace hone {

/// The inputs of products with a parameter that stay: indices of its dimension `axis`, in order.
struct StayingInputs {
  mlir::StringAttr param;
  int64_t axis;
  llvm::ArrayRef<int64_t> kept;
};

/// Removes the other inputs of each parameter, with all that is made for them or of them, in every function of `module`: types,
/// constants, attributes and the signature become smaller (docs/compression.md). Parameters get their types, and are to get
/// elements of them. Returns those types by name. Fails, after an error, where something cannot be cut.
llvm::FailureOr<llvm::MapVector<mlir::StringAttr, mlir::RankedTensorType>>
removeGroups(mlir::ModuleOp module, llvm::ArrayRef<StayingInputs> inputs);

} // namespace hone

#endif // HONE_TRANSFORMS_GROUPREMOVAL_H
