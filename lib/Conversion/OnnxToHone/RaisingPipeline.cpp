// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of the raising passes.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"
#include "hone/Conversion/Raising.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

namespace hone {

void buildRaisingPipeline(mlir::OpPassManager &manager, const RaisingOptions &options) {
  manager.addPass(createExpandQuantizedProducts());
  manager.addPass(createExpandOnnxFunctions({raising::kMicrosoft.str()}));
  manager.addPass(createInferOnnxShapes());
  manager.addPass(createDequantizeMovements());
  manager.addPass(createFoldDequantized());
  manager.addPass(createMergeCopies());
  manager.addPass(createExpandEinsum());
  manager.addPass(createArrangeParams());
  manager.addPass(createExpandFlexAttention());
  manager.addPass(createExpandMultiHeadAttention());
  // First: @forward may be made of a branch whose shapes are known only then. The masks of @forward are computed from the
  // state, and are recognised as that.
  manager.addPass(createRaiseState());
  if (!options.keepRoundings)
    manager.addPass(createDeferRoundings());
  manager.addPass(createRaiseNorms());
  manager.addPass(createRaiseRope());
  manager.addPass(createRaiseAttention());
  manager.addPass(createRaiseLinearAttention());
  manager.addPass(createRaiseLinear());
  manager.addPass(createRaiseMlp());
  manager.addPass(createRaiseEmbedding());
  if (!options.keepRoundings)
    manager.addPass(createRestoreRoundings());
  manager.addPass(createLimitLogits());
  manager.addPass(createWidenFloats());
}

void registerRaisingPipeline() {
  static mlir::PassPipelineRegistration<> pipeline("hone-raise",
                                                   "Raise onnx operations to the hone dialect: norms, rotary "
                                                   "embedding, state, attention, products, feed-forward blocks",
                                                   [](mlir::OpPassManager &manager) { buildRaisingPipeline(manager); });
}

} // namespace hone
