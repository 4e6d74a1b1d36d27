// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The conversions between Hone's levels.

#ifndef HONE_CONVERSION_PASSES_H
#define HONE_CONVERSION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace hone {

#define GEN_PASS_DECL
#include "hone/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "hone/Conversion/Passes.h.inc"

} // namespace hone

#endif // HONE_CONVERSION_PASSES_H
