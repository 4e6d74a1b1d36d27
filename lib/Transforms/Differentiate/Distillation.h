//===- Distillation.h - a loss that a teacher takes part in -------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_TRANSFORMS_DIFFERENTIATE_DISTILLATION_H
#define HONE_LIB_TRANSFORMS_DIFFERENTIATE_DISTILLATION_H

#include "hone/Transforms/Loops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hone {

struct DistillationLoss {
  double weight;      // of the KL divergence, from 0 to 1
  double temperature; // above 0
};

/// The first result of the function `name` of the module, for the inputs of `student`: its body is copied to where `b` is, with an empty
/// state. Inputs are those of the same names; the first one may have another. Fails after an error where there is no such function, or
/// its inputs or its result are not those of `student` and of the type of `logits`.
llvm::FailureOr<mlir::Value> buildTeacherLogits(LocBuilder &b, mlir::func::FuncOp student, llvm::StringRef name,
                                                mlir::Value logits);

/// (1 - w) · cross entropy + w T² · KL(softmax(reference / T) ‖ softmax(logits / T)), a tensor of one f32: T² makes the gradient of the
/// second as large as that of the first (Hinton et al. 2015, section 2).
mlir::Value buildDistillationLoss(LocBuilder &b, mlir::Value crossEntropy, mlir::Value logits, mlir::Value reference,
                                  const DistillationLoss &loss);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DIFFERENTIATE_DISTILLATION_H
