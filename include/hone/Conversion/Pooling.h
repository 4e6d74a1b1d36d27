// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sentence embeddings of an encoder.

#ifndef HONE_CONVERSION_POOLING_H
#define HONE_CONVERSION_POOLING_H

#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// The entry that gives one vector for a text.
inline constexpr llvm::StringLiteral kEmbed = "embed";

/// How the vectors of tokens become one, as Sentence Transformers calls it (Reimers and Gurevych 2019): `cls`, the first token's; of those that the
/// attention mask keeps `mean`, `max`, `mean_sqrt_len_tokens`, the sum over the root of their number, `weightedmean`, the mean weighted by
/// position from 1 on, or `lasttoken`.
llvm::ArrayRef<llvm::StringRef> listPoolings();

/// Adds @embed to the module of an encoder as it was imported: it has the inputs of @main, and one result, `sentence_embedding`, f32 [batch, size]:
/// the pooled vectors of tokens, divided by their L2 norm, at least 1e-12, with `normalizes`. `pooling` is one of listPoolings(). Fails, after an error,
/// where there are no vectors of tokens, floats [batch, sequence, size], or no attention mask.
llvm::LogicalResult addPooling(mlir::ModuleOp module, llvm::StringRef pooling, bool normalizes);

} // namespace hone

#endif // HONE_CONVERSION_POOLING_H
