// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Feed-forward blocks that are made of products.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_MLP_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_MLP_H

#include "OnnxMatch.h"

namespace hone::raising {

/// Replaces products of `function` with an activation between them by `hone.gated_mlp` and `hone.mlp`; the number of blocks.
unsigned raiseMlps(mlir::func::FuncOp function);

/// Forgets the roundings between a fused gate_up projection and what multiplies its halves: `hone-split-gate-up` makes a block of them.
void dropGateUpRoundings(mlir::func::FuncOp function);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_MLP_H
