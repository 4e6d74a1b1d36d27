//===- HoneParams.h - passes that change how parameters are stored ------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who reads a parameter, and the change of its encoding.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_HONEPARAMS_H
#define HONE_DIALECT_HONE_HONEPARAMS_H

#include "hone/Dialect/Hone/HoneOps.h"

#include "llvm/ADT/MapVector.h"

namespace hone {

/// The parameters of `module` that are read, in the order of their first reads, and what reads them.
llvm::MapVector<mlir::Operation *, llvm::SmallVector<GetParamOp>> findReads(mlir::ModuleOp module);

/// True if `use` is as the weight of a product or the table of an embedding, which may have any encoding.
bool takesEncoding(mlir::OpOperand &use);

/// Why the floats of `param` cannot be stored in another way, or an empty string: it has to be a matrix of f32, as plain or
/// `#hone.stored` elements, that only operands read which take an encoding.
llvm::StringRef getObstacleToEncoding(ParamOp param, llvm::ArrayRef<GetParamOp> reads);

/// Gives `param` and its `reads` the encoding. The bytes stay as they are until they are written: `#hone.converted` of what
/// they were first.
void changeEncoding(ParamOp param, llvm::ArrayRef<GetParamOp> reads, mlir::Attribute encoding);

} // namespace hone

#endif // HONE_DIALECT_HONE_HONEPARAMS_H
