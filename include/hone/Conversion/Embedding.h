// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A decoder that reads embeddings (`inputs_embeds`), after the model that looks them up.

#ifndef HONE_CONVERSION_EMBEDDING_H
#define HONE_CONVERSION_EMBEDDING_H

#include "mlir/IR/BuiltinOps.h"

namespace hone {

/// Puts `embedding`, token ids [batch, sequence] to embeddings [batch, sequence, size], before `decoder`, both as they were imported: in place of
/// its inputs that are outputs of `embedding` by name, @main gets one of token ids.
///
/// `encoder`, of images or audio, may be null. It becomes @encode, whose result is its features as rows, [features, size], and @main gets an
/// input of the same name: a token id of io::kFirstFeatureId + i is not looked up, but stands for row i. The name of that input is returned, or "".
///
/// `embedding` and `encoder` are left empty; their parameters get the prefixes `embedding.` and `encoder.`, and those that the decoder has too are
/// shared. Fails, after an error, where the models do not fit, or the opsets differ.
llvm::FailureOr<std::string> addEmbedding(mlir::ModuleOp decoder, mlir::ModuleOp embedding, mlir::ModuleOp encoder);

} // namespace hone

#endif // HONE_CONVERSION_EMBEDDING_H
