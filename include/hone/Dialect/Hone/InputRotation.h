//===- InputRotation.h - how the inputs of parameters were rotated -------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a pass that rotates the inputs of weights leaves for those that read what was measured of the inputs.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_INPUTROTATION_H
#define HONE_DIALECT_HONE_INPUTROTATION_H

#include "hone/Dialect/Hone/HoneOps.h"

namespace hone {

/// The attribute of a `hone.param` [N, K] whose input was, after it was divided by channel scales, divided by `gain`, K numbers or none, and
/// then multiplied with the compress::Rotation of `seed`, or that of blocks of `block` where it says that: `{block = …, gain = array<f32: …>,
/// seed = …}`.
constexpr llvm::StringLiteral kInputRotationName = "hone.input_rotation";

/// How the input of a parameter was rotated; nothing where it was not.
struct InputRotation {
  llvm::ArrayRef<float> gain;
  int64_t seed, block = 0;

  bool operator==(const InputRotation &other) const {
    return gain == other.gain && seed == other.seed && block == other.block;
  }
};
std::optional<InputRotation> getInputRotation(ParamOp param);

/// Notes that the input of `param` was rotated so.
void noteInputRotation(ParamOp param, InputRotation rotation);

} // namespace hone

#endif // HONE_DIALECT_HONE_INPUTROTATION_H
