// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The raising of onnx to hone as a whole.

#ifndef HONE_CONVERSION_RAISING_H
#define HONE_CONVERSION_RAISING_H

#include "mlir/Pass/PassManager.h"

namespace hone {

/// Adds the raising passes in their order: what a later pass recognises is made of what earlier ones raised.
void buildRaisingPipeline(mlir::OpPassManager &manager);

/// The pass `hone-bound-lookups`, which changes nothing but attributes (hone/Dialect/Hone/Lookups.h). Where hone.embedding or a
/// Gather looks the elements of an input up, perhaps with a constant added, the argument gets `hone.rows`; where the numbers of
/// rows are positions, the function gets `hone.limits`. It is silent on numbers of rows that it does not understand.
std::unique_ptr<mlir::Pass> createBoundLookups();

/// Registers the pipeline as `hone-raise`, and the passes that are declared here.
void registerRaisingPipeline();

} // namespace hone

#endif // HONE_CONVERSION_RAISING_H
