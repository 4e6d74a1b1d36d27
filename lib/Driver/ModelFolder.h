// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folders as exporters leave them: a model, its tokenizer and what else there is.

#ifndef HONE_LIB_DRIVER_MODELFOLDER_H
#define HONE_LIB_DRIVER_MODELFOLDER_H

#include "mlir/Support/LLVM.h"

#include <string>

namespace hone {

/// Where `model` is a folder, no artefact and not named as a file of a model, makes it the model in there: `model.onnx`, or the only file that ends in .onnx, or the same in
/// its folder `onnx`. Otherwise changes nothing. Fails, after a message, where the folder has no model, or several.
llvm::LogicalResult findModel(std::string &model);

/// The same. An empty `tokenizer` becomes the folder's tokenizer.json, where there is one.
llvm::LogicalResult findModel(std::string &model, std::string &tokenizer);

/// What the artefact of `model`, a file or such a folder, is called: the model's name with .hone.
std::string nameArtefact(llvm::StringRef model);

/// Whether `path` is such a folder.
bool isModelFolder(llvm::StringRef path);

} // namespace hone

#endif // HONE_LIB_DRIVER_MODELFOLDER_H
