// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory of a call, loops over it, and what LLVM is told of both.

#ifndef HONE_LIB_CONVERSION_HRTTOLLVM_MEMORYPATTERNS_H
#define HONE_LIB_CONVERSION_HRTTOLLVM_MEMORYPATTERNS_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// hrt.arena, hrt.parallel, and elements of one bit, which are a byte in memory.
void populateMemoryPatterns(mlir::LLVMTypeConverter &types, mlir::RewritePatternSet &patterns);

/// Puts loads and stores of loops whose iterations are independent into the access group of their loop.
void markIndependentAccesses(mlir::ModuleOp module);

} // namespace hone

#endif // HONE_LIB_CONVERSION_HRTTOLLVM_MEMORYPATTERNS_H
