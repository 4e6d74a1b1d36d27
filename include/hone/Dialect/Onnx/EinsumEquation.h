// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The equation of Einsum as labels of dimensions.

#ifndef HONE_DIALECT_ONNX_EINSUMEQUATION_H
#define HONE_DIALECT_ONNX_EINSUMEQUATION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace hone::onnxir {

struct EinsumEquation {
  /// A letter, or kEllipsis + how many dimensions of the ellipsis there are from this one on.
  using Label = int;
  static constexpr Label kEllipsis = 256;

  /// The equation over operands of these ranks, with the output that is meant where it has none. Nothing, and a reason for
  /// the user, where it does not fit them.
  static std::optional<EinsumEquation> parse(llvm::StringRef equation, llvm::ArrayRef<int64_t> ranks,
                                             std::string &reason);

  llvm::SmallVector<llvm::SmallVector<Label>> terms; // one an operand, a label a dimension
  llvm::SmallVector<Label> output;
};

} // namespace hone::onnxir

#endif // HONE_DIALECT_ONNX_EINSUMEQUATION_H
