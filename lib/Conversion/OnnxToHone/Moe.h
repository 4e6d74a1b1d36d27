// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of a few of many experts.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_MOE_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_MOE_H

#include "ExpertBlock.h"
#include "ExpertWeights.h"

namespace hone::raising {

/// Replaces the blocks of `function` that apply chosen experts to each row, as operators of com.microsoft (MoE, QMoE) or as
/// products with gathered matrices; the number of them. Other routings get a remark with the reason.
unsigned raiseMoes(mlir::func::FuncOp function, ExpertWeights &weights);

/// Replaces the sums of `function` to which each expert adds the results of the rows that chose it; the number of them.
unsigned raiseAddedExperts(mlir::func::FuncOp function, ExpertWeights &weights, SymbolicAnalysis &analysis);

/// Replaces `op`, MoE or QMoE of com.microsoft. Fails, after a remark, where hone.moe cannot say it.
bool raiseMoeOperator(Operation *op, ExpertWeights &weights);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_MOE_H
