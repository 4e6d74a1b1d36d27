//===- Gradient.h - the operator Gradient of ONNX -----------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_ONNX_GRADIENT_H
#define HONE_DIALECT_ONNX_GRADIENT_H

#include "llvm/ADT/StringRef.h"

namespace hone::onnxir {

/// Gradient of ai.onnx.preview.training, the one operation with an operand more than its node has inputs: the last is the value that its
/// attribute y names. Those before it are the values that xs and then zs name, and result number i is the gradient of the sum of all
/// elements of y with respect to operand i.
inline constexpr llvm::StringLiteral kGradientName = "onnx.ai.onnx.preview.training.Gradient";

} // namespace hone::onnxir

#endif // HONE_DIALECT_ONNX_GRADIENT_H
