//===- Orthogonalize.h - the Newton-Schulz iteration of Muon ------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_TRANSFORMS_DIFFERENTIATE_ORTHOGONALIZE_H
#define HONE_LIB_TRANSFORMS_DIFFERENTIATE_ORTHOGONALIZE_H

#include "hone/Transforms/Loops.h"

namespace hone {

/// About U Vᵀ of an f32 matrix U Σ Vᵀ `[rows, columns]` of static sizes: five steps of the quintic Newton-Schulz iteration
/// X ← a X + (b A + c A²) X with A = X Xᵀ, from the matrix over its Frobenius norm (Jordan et al. 2024, *Muon*). Singular values of at
/// least 1 % of the norm become 0.68 to 1.13. The products are of the shorter side, and run on the kernels of `hone.matmul`.
mlir::Value buildOrthogonalized(LocBuilder &b, mlir::Value matrix);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DIFFERENTIATE_ORTHOGONALIZE_H
