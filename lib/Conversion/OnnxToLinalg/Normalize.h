// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Formulas over whole tensors of floats: what normalizations are made of.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_NORMALIZE_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_NORMALIZE_H

#include "Formula.h"

namespace hone::lowering {

/// The tensor in the type that is computed in, and a computed one as `element`.
Value widen(Node &node, Value tensor);
Value narrow(Node &node, Value tensor, Type element);

/// One formula of each element; of the elements of two tensors, the second broadcast to the first.
Value mapFloats(Node &node, Value tensor, llvm::function_ref<Number(Number)> formula);
Value combineWith(Node &node, Value lhs, Value rhs, llvm::function_ref<Number(Number, Number)> formula);

/// Sum and mean of floats over axes.
Value sumOver(Node &node, Value tensor, ArrayRef<int64_t> axes, bool keep);
Value meanOver(Node &node, Value tensor, ArrayRef<int64_t> axes, bool keep);

/// ONNX's Softmax along one axis, of the type of `x`; NaN for rows of minus infinity.
Value computeSoftmax(Node &node, Value x, int64_t axis);

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_NORMALIZE_H
