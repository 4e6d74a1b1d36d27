// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The files that one artefact is made of.

#ifndef HONE_LIB_DRIVER_MODELS_H
#define HONE_LIB_DRIVER_MODELS_H

#include "Compiler.h"

#include "hone/io/features.h"

namespace hone {

/// The modules of the files of a compilation, null where there is none.
struct Models {
  mlir::OwningOpRef<mlir::ModuleOp> model, draft, encoder, crossAttention, embedding;

  llvm::SmallVector<mlir::ModuleOp, 5> list() {
    llvm::SmallVector<mlir::ModuleOp, 5> given;
    for (auto *each : {&model, &draft, &encoder, &crossAttention, &embedding})
      if (*each)
        given.push_back(**each);
    return given;
  }
};

/// Reads them. Files of one module may be of several opsets, and become those of the newest one. Fails after a diagnostic.
llvm::LogicalResult readModels(const CompileOptions &options, mlir::MLIRContext *context, Models &models);

/// Puts an embedding and an encoder into the model's module. Gives the features that it reads then, with their token as far as options say it,
/// or else -1. Fails after a diagnostic.
llvm::FailureOr<std::optional<io::FeatureInfo>> joinModels(const EncoderOptions &options, Models &models);

} // namespace hone

#endif // HONE_LIB_DRIVER_MODELS_H
