// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes between the hone dialect and LLVM, in phases that can be stopped after and started from.

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/Target/CPU.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace hone {

static void simplify(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void buildTensorPipeline(OpPassManager &pm, Target target) {
  bool isCpu = target == Target::Cpu;
  if (isCpu) { // how its kernels read weights and state
    pm.addPass(createPackWeights());
    pm.addNestedPass<func::FuncOp>(createSplitMlps());
    pm.addPass(createBlockState());
  }
  pm.addPass(createConvertHoneToHrt({/*target=*/isCpu ? "cpu" : "cuda"}));
  simplify(pm);
  pm.addNestedPass<func::FuncOp>(createFoldResiduals());
  pm.addPass(createFuseElementwise());
  pm.addPass(memref::createResolveShapedTypeResultDimsPass()); // of tensors: their sizes are known before they are made
  simplify(pm);
  if (isCpu) {
    pm.addNestedPass<func::FuncOp>(createFoldClamps());
    return;
  }
  pm.addNestedPass<func::FuncOp>(createPlaceTensors());
  simplify(pm);
}

void buildBufferPipeline(OpPassManager &pm, Target target, Sanitizer sanitizer, const LikelySizes &sizes) {
  pm.addPass(createSplitEmpties());
  pm.addPass(bufferization::createEmptyTensorToAllocTensorPass());
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.allowReturnAllocsFromLoops = true; // what a loop carries has a new size each time
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
  simplify(pm);
  pm.addPass(memref::createResolveShapedTypeResultDimsPass());
  pm.addNestedPass<func::FuncOp>(createFoldTransposes());
  if (target == Target::Cpu) {
    pm.addNestedPass<func::FuncOp>(createPlaceSlices());
    pm.addNestedPass<func::FuncOp>(createChooseLayouts());
  }
  simplify(pm);
  pm.addPass(bufferization::createOwnershipBasedBufferDeallocationPass());
  pm.addPass(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createSplitDeallocations());
  pm.addPass(bufferization::createBufferDeallocationSimplificationPass());
  pm.addPass(bufferization::createLowerDeallocationsPass());
  simplify(pm);
  if (target == Target::Cuda)
    pm.addNestedPass<func::FuncOp>(createPlaceBuffers());
  pm.addNestedPass<func::FuncOp>(createPlaceOutputs());
  if (sanitizer == Sanitizer::None)
    pm.addNestedPass<func::FuncOp>(createPlanMemory({sizes.batch, sizes.other}));
  simplify(pm);
  pm.addPass(createLowerCopies());
  if (target == Target::Cuda)
    pm.addPass(createConvertLinalgToGpu());
  pm.addPass(createLowerLinalg());
}

void buildLLVMPipeline(OpPassManager &pm, Target target) {
  pm.addPass(createLowerMath());
  pm.addPass(createLowerExpansions());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandOpsPass());
  pm.addPass(createConvertComplexToStandardPass());
  simplify(pm);
  if (target == Target::Cuda)
    pm.addNestedPass<gpu::GPUModuleOp>(createConvertGpuOpsToNVVMOps());
  pm.addPass(createConvertHrtToLLVM());
  simplify(pm);
}

} // namespace hone
