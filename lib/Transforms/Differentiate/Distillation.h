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
  double weight;        // of the KL divergence, from 0 to 1
  double temperature;   // above 0
  double featureWeight; // of the features' error, 0 or more
};

/// What a student learns of its teacher.
struct DistilledValues {
  mlir::Value logits;
  llvm::SmallVector<mlir::Value> features; // hidden states in their order, of one shape
};

/// The hidden states of `function`: what its norms read, of the shape that the last one reads.
llvm::SmallVector<mlir::Value> listFeatures(mlir::func::FuncOp function);

/// What the function `name` of the module gives first, and its features, for the inputs of `student`: its body is copied to where `b` is, with
/// an empty state. Inputs are those of the same names; the first one may have another. Fails after an error where there is no such function, or
/// its inputs or its result are not those of `student` and of the type of its logits; with `needsFeatures` also where these have other shapes
/// or another number.
llvm::FailureOr<DistilledValues> buildTeacher(LocBuilder &b, mlir::func::FuncOp student, llvm::StringRef name,
                                              const DistilledValues &values, bool needsFeatures);

/// (1 - w) · cross entropy + w T² · KL(softmax(reference / T) ‖ softmax(logits / T)), a tensor of one f32, of both losses: T² makes the
/// gradient of the second as large as that of the first (Hinton et al. 2015, section 2). To that comes featureWeight times the mean over
/// features of ‖S - R‖² / ‖R‖², where S is the student's and R the reference's (SquareHead of Kurtic et al. 2023, of each hidden state).
mlir::Value buildDistillationLoss(LocBuilder &b, mlir::Value crossEntropy, mlir::Value divergence,
                                  const DistilledValues &values, const DistilledValues &reference,
                                  const DistillationLoss &loss);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DIFFERENTIATE_DISTILLATION_H
