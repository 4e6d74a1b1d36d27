// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What takes a buffer with any strides, so that one may become a view of another.

#ifndef HONE_LIB_CONVERSION_MEMREFTOHRT_STRIDEDUSES_H
#define HONE_LIB_CONVERSION_MEMREFTOHRT_STRIDEDUSES_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace hone {

/// Whether the operation's only result is a view of its only buffer, whatever strides that has: a part that keeps the rank, or the same
/// with dimensions of size 1 added.
bool isStridedView(mlir::Operation *op);

/// Whether `use` is of a kernel, a loop of linalg, a copy, a load or a size; or of a view whose uses are.
bool takesStrides(mlir::OpOperand &use);

/// Whether `use` takes strides and does nothing but read, and so do the uses of views.
bool readsBuffer(mlir::OpOperand &use);

/// Replaces all uses of the buffer by `view`, of the same sizes; views get the types that follow. All uses take strides.
void replaceBuffer(mlir::memref::AllocOp buffer, mlir::Value view);

} // namespace hone

#endif // HONE_LIB_CONVERSION_MEMREFTOHRT_STRIDEDUSES_H
