// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folders as exporters leave them: a model, or an encoder and its decoder, what looks embeddings up, the tokenizer and the configuration.

#ifndef HONE_LIB_DRIVER_MODELFOLDER_H
#define HONE_LIB_DRIVER_MODELFOLDER_H

#include "mlir/Support/LLVM.h"

#include <string>

namespace hone {

struct CompileOptions;

/// Where `model` is a folder, no artefact and not named as a file of a model, makes it the model in there: `model.onnx`, or the only file that ends in .onnx, or the same in
/// its folder `onnx`. Otherwise changes nothing. Fails, after a message, where the folder has no model, or several.
llvm::LogicalResult findModel(std::string &model);

/// Likewise, for an artefact of all that the folder has: the names of `compile` that are empty become those of its files. An encoder and a decoder
/// are `encoder_model.onnx` beside `decoder_model_merged.onnx`, or beside `decoder_with_past_model.onnx` and `decoder_model.onnx`. A decoder that reads
/// embeddings has `embed_tokens.onnx` beside it, and `vision_encoder.onnx` or `audio_encoder.onnx`.
llvm::LogicalResult findFiles(CompileOptions &compile);

/// What the artefact of `model`, a file or such a folder, is called: the model's name with .hone.
std::string nameArtefact(llvm::StringRef model);

/// Whether `path` is such a folder.
bool isModelFolder(llvm::StringRef path);

} // namespace hone

#endif // HONE_LIB_DRIVER_MODELFOLDER_H
