// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roundings of activations to integers: a QuantizeLinear and the DequantizeLinear of its codes. While patterns are recognised a
// rounding is an attribute of the operation whose result it rounds.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_ROUNDING_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_ROUNDING_H

#include "OnnxMatch.h"

namespace hone::raising {

/// Attribute of a function: how many of its roundings were set aside.
inline constexpr llvm::StringLiteral kRoundings = "onnx.roundings";

/// What rounds `value` later, or null.
mlir::DictionaryAttr getRounding(Value value);
/// `rounding` may be null, for none.
void setRounding(Value value, mlir::DictionaryAttr rounding);

/// `with` with the rounding of `value`, which it is to take the place of: itself if nobody reads it yet, or else a copy.
Value keepRounding(Value value, Value with);

/// Whether the operator only moves elements of its first operand, or of all of them (Concat).
bool movesElements(Operation *op);

/// Integers that stand for floats, with their scale and their zero point, which may be null.
struct Codes {
  Value codes, scale, zero;
};

/// The floats; `axis` is that of scales that are not one for all.
Value dequantize(OnnxBuilder &onnx, const Codes &from, int64_t axis = 1);
/// `floats` as codes of the type of those of `like`.
Value quantize(OnnxBuilder &onnx, Value floats, const Codes &like);

/// Whether `scale` and `zero`, which may be null, are one for all elements.
bool isPerTensor(Value scale, Value zero);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_ROUNDING_H
