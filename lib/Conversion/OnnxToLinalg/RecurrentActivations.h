// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The activations of recurrent layers by the names of the standard.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_RECURRENTACTIVATIONS_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_RECURRENTACTIVATIONS_H

#include "Formula.h"

#include <functional>

namespace hone::lowering {

using RecurrentActivation = std::function<Number(Number)>;

/// The `count` activations of a direction of a recurrent layer, as `activations` names them or the operator's own. Fails, after an error,
/// where one is not known or there are not as many.
FailureOr<SmallVector<RecurrentActivation>> getRecurrentActivations(Node &node, unsigned count, int64_t direction);

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_RECURRENTACTIVATIONS_H
