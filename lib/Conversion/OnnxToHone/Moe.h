// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of a few of many experts.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_MOE_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_MOE_H

#include "OnnxMatch.h"

namespace hone::raising {

/// Replaces the blocks of `function` that apply chosen experts to each row, as com.microsoft.MoE or as products with
/// gathered matrices; the number of them. Other routings get a remark with the reason.
unsigned raiseMoes(mlir::func::FuncOp function);

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_MOE_H
