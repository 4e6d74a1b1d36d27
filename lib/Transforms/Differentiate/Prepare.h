//===- Prepare.h - an entry in operations that have adjoints ------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_TRANSFORMS_DIFFERENTIATE_PREPARE_H
#define HONE_LIB_TRANSFORMS_DIFFERENTIATE_PREPARE_H

#include "hone/Transforms/Adjoints.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hone {

/// Lets `function` begin with an empty state and keep none: no such argument and result is left. Fails after an error where it reads what
/// earlier calls have left.
llvm::LogicalResult emptyState(mlir::func::FuncOp function);

/// Replaces feed-forward blocks by products, experts by a loop over them, and named operations of linalg by generic ones but for fills and transpositions.
void splitForAdjoints(mlir::func::FuncOp function);

/// Decomposes the operations of `block` between what `want` wants and what the block returns whose adjoints leave something out, and lets
/// the others save what their adjoints read. `want` is asked again for each change. Fails after an error at a value of floats that have no
/// gradients here.
llvm::LogicalResult prepareForAdjoints(mlir::Block &block, llvm::function_ref<Adjoints()> want);

/// Erases what nothing reads, operands of loop nests too.
void eraseUnused(mlir::func::FuncOp function);

/// Lets loops carry on as it is what they carry for its own next value alone.
void keepUnusedCarried(mlir::func::FuncOp function);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DIFFERENTIATE_PREPARE_H
