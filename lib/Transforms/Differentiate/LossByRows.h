//===- LossByRows.h - losses that never hold all logits -----------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_TRANSFORMS_DIFFERENTIATE_LOSSBYROWS_H
#define HONE_LIB_TRANSFORMS_DIFFERENTIATE_LOSSBYROWS_H

#include "hone/Transforms/Loops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace hone {

/// Means over all rows of logits, tensors of one f32.
struct LogitLosses {
  mlir::Value crossEntropy; // with the targets
  mlir::Value divergence;   // KL(softmax(reference / T) ‖ softmax(logits / T)), or null
  mlir::scf::ForOp loop;    // that goes over the rows, or null
};

/// The losses of logits `[…, V]` of f32 with targets `[…]` and, if it is not null, a reference of the same shape as the logits. Where the
/// logits are the product of rows with the last layer's weight, and V is known, this is a loop over chunks of rows that have at most
/// `mostLogits` (fused linear and cross-entropy: Hsu et al., *Liger Kernel*, 2024; Wijmans et al., *Cut Your Losses in
/// Large-Vocabulary Language Models*, 2024); with 0, and otherwise, of all logits.
LogitLosses buildLogitLosses(LocBuilder &b, mlir::Value logits, mlir::Value targets, mlir::Value reference,
                             double temperature, int64_t mostLogits);

/// Lets `backward`, the adjoint of `loop`, compute what `loop` gives as well, so that logits are computed once; `loop` is erased. Its results
/// are then known after `backward`, and operations that read them move behind that: nothing is done where `backward` depends on them.
void mergeIntoAdjoint(mlir::scf::ForOp loop, mlir::scf::ForOp backward);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DIFFERENTIATE_LOSSBYROWS_H
