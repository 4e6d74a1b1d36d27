// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What takes a buffer with any strides, so that one may become a view of another.

#ifndef HONE_LIB_CONVERSION_MEMREFTOHRT_STRIDEDUSES_H
#define HONE_LIB_CONVERSION_MEMREFTOHRT_STRIDEDUSES_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace hone {

/// Whether `use` is of a kernel, a loop of linalg, a copy, a load, a size or a part of the buffer that keeps the rank; so are the uses of
/// parts.
bool takesStrides(mlir::OpOperand &use);

/// Whether `use` takes strides and does nothing but read, and so do the uses of parts.
bool readsBuffer(mlir::OpOperand &use);

/// Replaces all uses of the buffer by `view`, of the same sizes; parts get the types that follow. All uses take strides.
void replaceBuffer(mlir::memref::AllocOp buffer, mlir::Value view);

} // namespace hone

#endif // HONE_LIB_CONVERSION_MEMREFTOHRT_STRIDEDUSES_H
