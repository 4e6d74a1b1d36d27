// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What products with some weights do to what they multiply them with.

#ifndef HONE_TRANSFORMS_ROUNDACTIVATIONS_H
#define HONE_TRANSFORMS_ROUNDACTIVATIONS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace hone {

/// `x` `[…, K]` as a product with `weight` rounds it, in f32, by what the weight's encoding says of activations; `x` itself where it
/// says nothing of them.
mlir::Value roundActivations(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Value weight);

} // namespace hone

#endif // HONE_TRANSFORMS_ROUNDACTIVATIONS_H
