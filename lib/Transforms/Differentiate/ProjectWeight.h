//===- ProjectWeight.h - what a step reads of a weight that is to be N:M ------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_TRANSFORMS_DIFFERENTIATE_PROJECTWEIGHT_H
#define HONE_LIB_TRANSFORMS_DIFFERENTIATE_PROJECTWEIGHT_H

#include "hone/Compress/Pruning.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/Loops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hone {

/// How weights of a pattern are trained. The forward pass reads a projection of the dense weight, and its gradient is that of the dense
/// weight as well (a straight-through estimator).
///
/// - sr-ste: the elements of largest magnitude, with a decay of the others in the gradient (Hu et al., "Accelerating Transformer
///   Pre-training with 2:4 Sparsity", 2024, section 4);
/// - ast: the same, with the decay between the moments of AdamW (Huang et al., "Pruning Large Language Models with Semi-Structural Adaptive
///   Sparse Training", 2024);
/// - cast: the dense weight is read, and the elements that are not kept decay to 0 at a rate that grows between the moments of AdamW (AdamS
///   of Huang et al., "CAST: Continuous and Differentiable Semi-Structured Sparsity-Aware Training for Large Language Models", 2025);
/// - s-ste: magnitudes less the largest that is not kept, times a scale (Hu et al., "S-STE: Continuous Pruning Function for Efficient 2:4
///   Sparse Pre-training", 2024).
constexpr llvm::StringLiteral kSrSte = "sr-ste", kAst = "ast", kCast = "cast", kSSte = "s-ste";

/// A projection of matrices that are read with groups along one axis.
struct Projection {
  compress::NmPattern pattern;
  int64_t axis;               // of groups: 0 or 1
  std::optional<float> scale; // of s-ste
};

/// The projection of `weight`, a matrix of f32 whose size along the axis is a multiple of the pattern's width. Of equal magnitudes those
/// that come first are kept, as pruneByMagnitude keeps them.
mlir::Value buildProjection(LocBuilder &b, mlir::Value weight, const Projection &projection);

/// How the weight `param` of products of `function` is projected, by its elements. Groups lie along its inputs, in the shape that it
/// has in the file. Fails, after an error, where it is no such weight of f32, its inputs are no multiple of the pattern's width, or its bytes
/// cannot be read.
llvm::FailureOr<Projection> getProjection(mlir::func::FuncOp function, ParamOp param, compress::NmPattern pattern,
                                          llvm::StringRef mode);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DIFFERENTIATE_PROJECTWEIGHT_H
