// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass: functions with onnx operations become functions with linalg, tensor, arith and what is left of hone.

#include "Lowering.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"

namespace hone {
#define GEN_PASS_DEF_CONVERTONNXTOLINALG
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::lowering {

const LoweringTable &getLoweringTable() {
  static const LoweringTable table = [] {
    LoweringTable rows;
    addActivationLowerings(rows);
    addAssembleLowerings(rows);
    addAttentionLowerings(rows);
    addBlockQuantizedLowerings(rows);
    addBranchLowerings(rows);
    addCastLowerings(rows);
    addConvLowerings(rows);
    addEinsumLowerings(rows);
    addFlexAttentionLowerings(rows);
    addFourierLowerings(rows);
    addGridSampleLowerings(rows);
    addIndexingLowerings(rows);
    addIntegerConvLowerings(rows);
    addLinearAttentionLowerings(rows);
    addLinearLowerings(rows);
    addLogicLowerings(rows);
    addLoopLowerings(rows);
    addMathLowerings(rows);
    addMicrosoftAttentionLowerings(rows);
    addMoeLowerings(rows);
    addNGramLowerings(rows);
    addNonMaxSuppressionLowerings(rows);
    addNormalizeLowerings(rows);
    addOptimizerLowerings(rows);
    addPadLowerings(rows);
    addPoolLowerings(rows);
    addRangeLowerings(rows);
    addReduceLowerings(rows);
    addRegionSampleLowerings(rows);
    addResizeLowerings(rows);
    addRnnLowerings(rows);
    addScatterLowerings(rows);
    addSelectLowerings(rows);
    addShapeLowerings(rows);
    addSoftmaxLowerings(rows);
    addUniqueLowerings(rows);
    addQuantizeLowerings(rows);
    addSortLowerings(rows);
    return rows;
  }();
  return table;
}

LogicalResult checkSupported(Operation *root, llvm::function_ref<bool(Operation *)> isKnown) {
  llvm::MapVector<StringRef, SmallVector<Operation *>> unsupported;
  root->walk([&](Operation *op) {
    StringRef name = op->getName().getStringRef();
    bool structural = isa<onnxir::YieldOp, onnxir::NoValueOp>(op) || !onnxir::isOnnxOp(op);
    if (!structural && !getLoweringTable().contains(name) && !isKnown(op))
      unsupported[name].push_back(op);
  });
  for (auto &[name, ops] : unsupported)
    emitError(ops.front()->getLoc()) << "unsupported operator " << name.drop_front(onnxir::kDialectName.size() + 1)
                                     << " (" << ops.size() << (ops.size() == 1 ? " node)" : " nodes)");
  return success(unsupported.empty());
}

/// Parameters lose the signs of their types as everything else does.
static void dropParameterSigns(ModuleOp module) {
  for (auto param : module.getOps<ParamOp>()) {
    auto type = dyn_cast<RankedTensorType>(param.getType());
    if (!type || withoutSign(type) == type)
      continue;
    auto unsignedType = cast<RankedTensorType>(withoutSign(type));
    if (auto elements = dyn_cast<ElementsAttr>(param.getStorage()))
      param.setStorageAttr(withoutSign(elements));
    param.setType(unsignedType);
  }
}

static LogicalResult lowerFunction(func::FuncOp function) {
  Block &from = function.getBody().front();
  auto *into = new Block();
  function.getBody().push_back(into);
  Lowerer lowerer(function, getLoweringTable());
  lowerArguments(function, from, *into, lowerer);
  if (failed(lowerer.lowerBlock(from)))
    return failure();
  lowerResults(function, from.getTerminator(), lowerer);
  into->moveBefore(&from);
  from.dropAllReferences();
  from.dropAllUses();
  from.erase();
  function.setFunctionType(
      FunctionType::get(function.getContext(), into->getArgumentTypes(), into->getTerminator()->getOperandTypes()));
  return success();
}

namespace {
struct ConvertOnnxToLinalg : impl::ConvertOnnxToLinalgBase<ConvertOnnxToLinalg> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkSupported(module, [](Operation *) { return false; })))
      return signalPassFailure();
    module.walk([&](Operation *op) { numLowered += onnxir::isOnnxOp(op); });
    dropParameterSigns(module);
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && failed(lowerFunction(function)))
        return signalPassFailure();
    module->removeAttr(onnxir::kOpsetsAttr);
    module->removeAttr(onnxir::kIrVersionAttr);
  }
};
} // namespace

} // namespace hone::lowering
