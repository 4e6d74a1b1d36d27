// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the bytes of parameters lie in the weights file.

#ifndef HONE_LIB_CONVERSION_HONETOHRT_PLACEPARAMETERS_H
#define HONE_LIB_CONVERSION_HONETOHRT_PLACEPARAMETERS_H

#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// Erases the parameters of `module` that nothing reads and gives the others their offsets; returns how many those are.
int64_t placeParameters(mlir::ModuleOp module);

} // namespace hone

#endif // HONE_LIB_CONVERSION_HONETOHRT_PLACEPARAMETERS_H
