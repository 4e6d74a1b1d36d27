//===- UpdateParameter.h - what optimizers compute ----------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The norm of gradients, and one loop nest a parameter that reads it, its gradient and its moments, and gives what they become.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_TRANSFORMS_DIFFERENTIATE_UPDATEPARAMETER_H
#define HONE_LIB_TRANSFORMS_DIFFERENTIATE_UPDATEPARAMETER_H

#include "hone/Transforms/Loops.h"
#include "hone/Transforms/Passes.h"

namespace hone {

constexpr llvm::StringLiteral kSgd = "sgd", kMomentum = "momentum", kAdamW = "adamw", kMuon = "muon";

/// Numbers that a step computes once; those that it does not need are null.
struct UpdateFactors {
  mlir::Value rate, clip, maskDecay, momentKept; // f32; the last is 1 - maskDecay
  mlir::Value firstCorrection, secondCorrection; // f64: 1 - beta^t
};

/// Fails, after an error at `loc`, for an optimizer that there is not and for options outside their ranges.
llvm::LogicalResult checkOptimizer(mlir::Location loc, const AddOptimizerOptions &options);

/// What the slots of an optimizer's moments of a parameter are called, after its name.
llvm::ArrayRef<llvm::StringLiteral> listMoments(llvm::StringRef optimizer);

/// decay · old + (1 - decay) · fresh, of f64.
mlir::Value mixF64(LocBuilder &b, mlir::Value old, mlir::Value fresh, double decay);

/// The Euclidean norm of all elements of tensors of f32 or bf16, an f32: rows are summed in f32, and their sums in f64.
mlir::Value buildNorm(LocBuilder &b, llvm::ArrayRef<mlir::Value> tensors);

/// The f32 by which gradients of this norm are multiplied for one of at most `maxNorm`: min(1, maxNorm / (norm + 1e-6)), as PyTorch's
/// clip_grad_norm_ has it.
mlir::Value buildClipFactor(LocBuilder &b, mlir::Value norm, double maxNorm);

/// `held`, a parameter and its moments, after the update, in place (updateElements); all tensors are of one type, but that `gradient` may be
/// bf16. With p, g and rate η, and a weight decay λ of parameters of two dimensions or more:
///
/// - sgd: p - η (g + λ p);
/// - momentum: v ← μ v + g + λ p; p - η v (Sutskever et al. 2013, without dampening);
/// - adamw: m ← β1 m + (1 - β1) g; v ← β2 v + (1 - β2) g²; p (1 - η λ) - η (m / c1) / (√(v / c2) + ε) (Loshchilov and Hutter 2019).
/// - muon, of a matrix [m, n]: v ← μ v + (1 - μ) g; p (1 - η λ) - η 0.2 √max(m, n) O(μ v + (1 - μ) g), where O is buildOrthogonalized
///   (Jordan et al. 2024; the factor, with which rates of adamw serve, Liu et al. 2025).
///
/// With `keepZeros` an element of such parameters that is 0 stays 0.
///
/// Where the model reads `projected` in place of the parameter, with the mask decay κ and d = κ (p - projected), the sparse mode sr-ste has
/// g + d for g, and ast m + d for m but for the mean that is kept: v ← β2 v + (1 - β2) (m + d)². For cast κ is a part of 1, and where
/// `projected` is 0, (1 - κ) m + κ λ sign(p) with the option's λ stands for m in the same way.
///
/// `optimizer` is that of this parameter.
llvm::SmallVector<mlir::Value> buildUpdate(LocBuilder &b, llvm::StringRef optimizer, const AddOptimizerOptions &options,
                                           const UpdateFactors &factors, mlir::ValueRange held, mlir::Value gradient,
                                           mlir::Value projected);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DIFFERENTIATE_UPDATEPARAMETER_H
