// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parameters as kernels of a device read them.

#ifndef HONE_LIB_CONVERSION_HONETOHRT_DEVICEWEIGHTS_H
#define HONE_LIB_CONVERSION_HONETOHRT_DEVICEWEIGHTS_H

#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// Makes parameters of the constants of `module` whose elements are not all the same; equal ones become one.
void outlineConstants(mlir::ModuleOp module);

/// Transposes matrices of `module` that products read and that lie input after input: rows of outputs.
void transposeWeights(mlir::ModuleOp module);

} // namespace hone

#endif // HONE_LIB_CONVERSION_HONETOHRT_DEVICEWEIGHTS_H
