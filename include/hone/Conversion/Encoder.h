// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An encoder and its decoder in one module.

#ifndef HONE_CONVERSION_ENCODER_H
#define HONE_CONVERSION_ENCODER_H

#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// The entry that computes what a decoder reads of its encoder.
inline constexpr llvm::StringLiteral kEncode = "encode";

/// Adds @encode to the module of a decoder, both as they were imported: it has the inputs of `encoder`, and a result for each input of the
/// decoder that has to do with the encoder, under that input's name. Keys and values of cross-attention are computed as the decoder without
/// a past does: `cross` where that is a model of its own, or else the branch without a past of a merged decoder; where neither gives them, the
/// encoder has to. `encoder` and `cross`, which may be null, are left empty. Parameters get the prefixes `encoder.` and `cross.`, and those that the
/// decoder has too are shared. Fails, after an error, where an input of the decoder gets nothing, or the opsets differ.
llvm::LogicalResult addEncoder(mlir::ModuleOp decoder, mlir::ModuleOp encoder, mlir::ModuleOp cross);

} // namespace hone

#endif // HONE_CONVERSION_ENCODER_H
