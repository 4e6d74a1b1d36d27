// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers as what their branches add to a residual stream: attention, and a feed-forward block.

#ifndef HONE_LIB_TRANSFORMS_PRUNE_RESIDUALBRANCHES_H
#define HONE_LIB_TRANSFORMS_PRUNE_RESIDUALBRANCHES_H

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/MeasuredInputs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace hone::prune {

/// What one branch adds to the residual stream, in one function.
struct Branch {
  mlir::Operation *add = nullptr; // residual stream + branch, or a norm of com.microsoft that takes the sum of both
  mlir::Value other;              // the residual stream
  mlir::StringAttr weight;        // of the last product
  /// Operations that serve the branch alone, and are dead without it; without appends to the state.
  llvm::SetVector<mlir::Operation *> owned;
  llvm::SmallVector<KvAppendOp> appends;
  std::string blocker; // why it cannot go, or empty
};

/// A layer in all functions that have it.
struct ResidualLayer {
  mlir::Location loc;
  llvm::SmallVector<mlir::StringAttr> weights; // of the last products of its branches, in the order of the branches
  llvm::SmallVector<Branch, 0> branches;       // of all functions
  int64_t elements = 0;                        // of the parameters that it alone reads
  std::string blocker;                         // why it cannot go, or empty
};

/// The layers of `module`, first to last: the n-th attention and the n-th feed-forward block of a function. None where functions do not
/// agree on them. Those without statistics cannot go.
llvm::SmallVector<ResidualLayer> findLayers(mlir::ModuleOp module, const MeasuredInputs &inputs);

/// The mean square of the rows of the tables that embeddings read, summed over tables. Fails where their bytes cannot be read.
llvm::FailureOr<double> measureTables(mlir::ModuleOp module);

/// The branch that `product` with `weight` ends, in a graph that need not be raised.
Branch findBranch(mlir::Operation *product, mlir::StringAttr weight);

/// Why the pasts of a branch cannot go with it, or an empty string.
std::string getPastsBlocker(const Branch &branch);

/// Removes branches that can go, in the order of the residual stream, with their slots, past arguments and present results; the slots that stay
/// are numbered anew.
void removeBranches(llvm::ArrayRef<const Branch *> branches, mlir::ModuleOp module);

/// Removes layers that can go, with their slots, past arguments and present results; the slots that stay are numbered anew.
void removeLayers(llvm::ArrayRef<const ResidualLayer *> layers, mlir::ModuleOp module);

} // namespace hone::prune

#endif // HONE_LIB_TRANSFORMS_PRUNE_RESIDUALBRANCHES_H
