// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The raising of onnx to hone as a whole.

#ifndef HONE_CONVERSION_RAISING_H
#define HONE_CONVERSION_RAISING_H

#include "mlir/Pass/PassManager.h"

namespace hone {

struct RaisingOptions {
  /// Whether activations that a file rounds are rounded inside of blocks too, which are then not recognised.
  bool keepRoundings = false;
};

/// Adds the raising passes in their order: what a later pass recognises is made of what earlier ones raised.
void buildRaisingPipeline(mlir::OpPassManager &manager, const RaisingOptions &options = {});

/// Registers the pipeline as `hone-raise`.
void registerRaisingPipeline();

} // namespace hone

#endif // HONE_CONVERSION_RAISING_H
