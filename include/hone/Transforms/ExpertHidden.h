//===- ExpertHidden.h - what experts have between their layers ----------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_TRANSFORMS_EXPERTHIDDEN_H
#define HONE_TRANSFORMS_EXPERTHIDDEN_H

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/Loops.h"

namespace hone {

/// The hidden rows of `op`, rounded to `elements`, from the sums of its up and its gate; gate is null in a plain block.
mlir::Value buildExpertHidden(LocBuilder &builder, MoeOp op, mlir::Value up, mlir::Value gate, mlir::Type elements);

/// The gate and the up of `rows` `[…, 2 I]`, which are what the fused up of `op` gives.
std::pair<mlir::Value, mlir::Value> splitFusedRows(LocBuilder &builder, MoeOp op, mlir::Value rows);

} // namespace hone

#endif // HONE_TRANSFORMS_EXPERTHIDDEN_H
