// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of phases. The passes of the rewrite phase depend on options (Rewrites.h).

#include "Phases.h"

#include "hone/Conversion/Passes.h"
#include "hone/Conversion/Raising.h"
#include "hone/Target/CPU.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace hone {

static void buildRaisePhase(OpPassManager &pm, const PhaseSettings &settings) {
  buildRaisingPipeline(pm, settings.raising);
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

static void buildLowerPhase(OpPassManager &pm, const PhaseSettings &) {
  pm.addPass(createBoundLookups());
  pm.addPass(createExpandOnnxFunctions());
  pm.addPass(createMoveTransposes());
  pm.addPass(createFoldBatchNorms());
  pm.addPass(createConvertOnnxToLinalg());
  pm.addNestedPass<func::FuncOp>(createExpandGradients());
  pm.addPass(createHoistChecks());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

template <Target target> static void buildTensorPhase(OpPassManager &pm, const PhaseSettings &) {
  buildTensorPipeline(pm, target);
}
template <Target target> static void buildBufferPhase(OpPassManager &pm, const PhaseSettings &settings) {
  buildBufferPipeline(pm, target, settings.sanitizer, settings.sizes);
}
template <Target target> static void buildLLVMPhase(OpPassManager &pm, const PhaseSettings &) {
  buildLLVMPipeline(pm, target);
}

template <Target target>
static constexpr Phase kPhases[] = {
    {"import", "the file as it is, in the onnx dialect", nullptr},
    {"raise", "transformer parts recognised, in the hone dialect", buildRaisePhase},
    {"rewrite", "rewrites that were asked for", [](OpPassManager &, const PhaseSettings &) {}},
    {"lower", "everything else in linalg", buildLowerPhase},
    {"tensor", "entry points, kernels selected, loops fused", buildTensorPhase<target>},
    {"buffer", "memory instead of values", buildBufferPhase<target>},
    {"llvm", "the LLVM dialect", buildLLVMPhase<target>},
};

llvm::ArrayRef<Phase> getPhases(StringRef device) {
  return device == "cuda" ? kPhases<Target::Cuda> : kPhases<Target::Cpu>;
}

std::vector<StringRef> listPhaseNames() {
  std::vector<StringRef> names;
  for (const Phase &phase : getPhases())
    names.push_back(phase.name);
  return names;
}

size_t getPhaseNumber(StringRef name) {
  ArrayRef<Phase> phases = getPhases();
  return llvm::find_if(phases, [&](const Phase &phase) { return phase.name == name; }) - phases.begin();
}

} // namespace hone
