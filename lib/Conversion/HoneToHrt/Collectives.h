// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef HONE_LIB_CONVERSION_HONETOHRT_COLLECTIVES_H
#define HONE_LIB_CONVERSION_HONETOHRT_COLLECTIVES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// Replaces what `entry` does over ranks, operations of the dialect `shard`, with kernels, whose names begin with
/// `prefix`: "hone." or "cuda.". Fails, after an error, for what there is none for.
llvm::LogicalResult lowerCollectives(mlir::func::FuncOp entry, llvm::StringRef prefix);

/// Erases the grids of ranks, which nothing names any more.
void eraseGrids(mlir::ModuleOp module);

} // namespace hone

#endif // HONE_LIB_CONVERSION_HONETOHRT_COLLECTIVES_H
