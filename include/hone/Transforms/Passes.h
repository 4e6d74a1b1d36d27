// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes over the hone dialect.

#ifndef HONE_TRANSFORMS_PASSES_H
#define HONE_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace hone {

#define GEN_PASS_DECL
#include "hone/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "hone/Transforms/Passes.h.inc"

} // namespace hone

#endif // HONE_TRANSFORMS_PASSES_H
