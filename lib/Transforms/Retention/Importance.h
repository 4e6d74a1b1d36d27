// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry @importance, which says how much attention keys of the state get from the last queries.

#ifndef HONE_LIB_TRANSFORMS_RETENTION_IMPORTANCE_H
#define HONE_LIB_TRANSFORMS_RETENTION_IMPORTANCE_H

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/ScoredLayers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hone::retention {

/// Adds @importance after `forward`: for each layer the mass of its keys as hone-retain-keys says, `[B, Hk, max(Sk - 1, 0)]`.
void addImportance(mlir::func::FuncOp forward, llvm::ArrayRef<ScoredLayer> layers);

} // namespace hone::retention

#endif // HONE_LIB_TRANSFORMS_RETENTION_IMPORTANCE_H
