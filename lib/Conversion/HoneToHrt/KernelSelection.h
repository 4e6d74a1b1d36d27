// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which operation of the hone dialect runs on which kernel of the CPU runtime.

#ifndef HONE_LIB_CONVERSION_HONETOHRT_KERNELSELECTION_H
#define HONE_LIB_CONVERSION_HONETOHRT_KERNELSELECTION_H

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hone {

/// Turns every operation of `entry` that has a kernel into hrt.kernel; returns how many.
int64_t selectKernels(mlir::func::FuncOp entry);

/// Whether `op` has a kernel.
bool hasKernel(AttentionOp op);

} // namespace hone

#endif // HONE_LIB_CONVERSION_HONETOHRT_KERNELSELECTION_H
