// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of a few of many experts.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_MOE_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_MOE_H

#include "Activation.h"
#include "ExpertWeights.h"

namespace hone::raising {

/// Layers of the experts' blocks, `[E, outputs, inputs]` of floats or as hone.moe wants them, and biases `[E, outputs]`.
struct ExpertBlock {
  Value up, gate, down;             // gate is null in a plain block
  Value upBias, gateBias, downBias; // each may be null
  Activation activation;
  std::optional<FusedRows> fused; // where up has the gate too
};

/// Creates hone.moe for rows of `x` `[rows, K]`, with experts that `ids` and `weights` `[rows, T]` choose.
Value createMoe(OnnxBuilder &onnx, Value x, Value ids, Value weights, const ExpertBlock &block);

/// Replaces the blocks of `function` that apply chosen experts to each row, as operators of com.microsoft (MoE, QMoE) or as
/// products with gathered matrices; the number of them. Other routings get a remark with the reason.
unsigned raiseMoes(mlir::func::FuncOp function, ExpertWeights &weights);

/// Replaces `op`, MoE or QMoE of com.microsoft. Fails, after a remark, where hone.moe cannot say it.
bool raiseMoeOperator(Operation *op, ExpertWeights &weights);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_MOE_H
