// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activations by the values they take.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_ACTIVATION_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_ACTIVATION_H

#include "OnnxMatch.h"

namespace hone::raising {

/// `kind(source + bias)`, with no bias in most cases.
struct MatchedActivation {
  Activation kind;
  Value source, bias;
};

/// Recognises `value` as an activation of one tensor, whatever element-wise operators spell it: the function is evaluated
/// at points and compared. Nothing if it is none that the hone dialect names, or if it reads more than one tensor.
std::optional<MatchedActivation> matchActivation(Value value, SymbolicAnalysis &analysis);

/// `kind(gate) · up`, or the SwiGLU of both with those constants.
struct MatchedGate {
  Value gate, up;
  Activation kind;
  std::optional<Swiglu> swiglu;
};

/// Recognises `value` as a gate of two tensors, in each way that it may be one.
SmallVector<MatchedGate> matchGates(Value value, SymbolicAnalysis &analysis);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_ACTIVATION_H
