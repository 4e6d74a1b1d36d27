// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constants as parameters.

#ifndef HONE_LIB_CONVERSION_HONETOHRT_OUTLINECONSTANTS_H
#define HONE_LIB_CONVERSION_HONETOHRT_OUTLINECONSTANTS_H

#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// Makes parameters of the constants of `module` whose elements are not all the same; equal ones become one.
void outlineConstants(mlir::ModuleOp module);

} // namespace hone

#endif // HONE_LIB_CONVERSION_HONETOHRT_OUTLINECONSTANTS_H
