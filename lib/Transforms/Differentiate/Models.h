//===- Models.h - what the files of adjoints share ----------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file a family of operations; each attaches its models of DifferentiableOpInterface.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_TRANSFORMS_DIFFERENTIATE_MODELS_H
#define HONE_LIB_TRANSFORMS_DIFFERENTIATE_MODELS_H

#include "hone/Dialect/Hone/HoneOpInterfaces.h"
#include "hone/Transforms/Adjoints.h"

#include "mlir/IR/IRMapping.h"

namespace hone {

void registerAttentionAdjoints(mlir::DialectRegistry &registry);
void registerControlAdjoints(mlir::DialectRegistry &registry);
void registerDecomposedAdjoints(mlir::DialectRegistry &registry);
void registerDistillationAdjoint(mlir::DialectRegistry &registry);
void registerLinalgAdjoints(mlir::DialectRegistry &registry);
void registerNormAdjoints(mlir::DialectRegistry &registry);
void registerProductAdjoints(mlir::DialectRegistry &registry);
void registerScalarAdjoints(mlir::DialectRegistry &registry);
void registerTensorAdjoints(mlir::DialectRegistry &registry);

/// `tensor` as `type`, which knows more or fewer of its sizes.
mlir::Value castTo(LocBuilder &builder, mlir::Value tensor, mlir::Type type);

/// The type of the gradient of `value`.
mlir::Type getGradientType(mlir::Value value);

/// The gradient of a value that nothing depends on, of the shape of `like`.
mlir::Value buildZeroGradient(LocBuilder &builder, mlir::Value like);

/// Builds the adjoints of those of `ops` whose results have gradients, from the last to the first, and gives their number. Fails after an
/// error at one that has none.
mlir::FailureOr<int64_t> buildAdjoints(LocBuilder &builder, llvm::ArrayRef<mlir::Operation *> ops, Adjoints &adjoints);

/// The gradients of the body of an operation, of which `ops` are computed once more by a copy that `copies` maps to: `gradients` has
/// those of what it yields, and gets those of everything `isActive` says yes to. Fails after an error.
llvm::LogicalResult buildBodyAdjoints(LocBuilder &builder, llvm::ArrayRef<mlir::Operation *> ops,
                                      const mlir::IRMapping &copies, llvm::function_ref<bool(mlir::Value)> isActive,
                                      llvm::DenseMap<mlir::Value, mlir::Value> &gradients);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DIFFERENTIATE_MODELS_H
