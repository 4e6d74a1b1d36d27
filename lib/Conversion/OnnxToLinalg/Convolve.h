// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What convolutions of floats and of integers share.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_CONVOLVE_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_CONVOLVE_H

#include "Window.h"

namespace hone::lowering {

/// The convolution of `x` [N, C, spatial...] with `weight` [M, C / groups, kernel...] as the attributes of Conv say; `bias` [M] may be null.
/// Fails, after an error, where sizes do not fit.
FailureOr<Value> convolve(Node &node, Value x, Value weight, Value bias);

/// `tensor` [N, M, spatial...] with a `bias` [M] added, which may be null. Fails, after an error, where sizes do not fit.
FailureOr<Value> addBias(Node &node, Value tensor, Value bias);

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_CONVOLVE_H
