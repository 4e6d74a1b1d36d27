// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers that hone-prune-layers has removed from a raised copy, found and removed in the graph of the file.

#ifndef HONE_TRANSFORMS_LAYERREMOVAL_H
#define HONE_TRANSFORMS_LAYERREMOVAL_H

#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// The weights of the last products of the branches of each layer of a raised module, in the order of the branches. None where no layers are
/// recognised.
llvm::SmallVector<mlir::StringAttr> listBranchEnds(mlir::ModuleOp module);

/// Removes the branches that end with products with these weights from `module`, which need not be raised: what they alone compute, their
/// pasts and presents, and the parameters that nothing else reads. The residual stream bypasses the layer; a norm of com.microsoft that adds the branch
/// to it first becomes one that does not. Fails, after an error that names the weight, where a branch cannot go.
llvm::LogicalResult removeBranches(mlir::ModuleOp module, llvm::ArrayRef<mlir::StringAttr> weights);

} // namespace hone

#endif // HONE_TRANSFORMS_LAYERREMOVAL_H
