// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-convert-weights: matrices of f32 stored in 16 bits, where only operations read them that take encodings.

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace hone {
#define GEN_PASS_DEF_CONVERTWEIGHTS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

/// True if the operation takes operand `number` in any encoding.
static bool takesEncoding(Operation *op, unsigned number) {
  Value operand = op->getOperand(number);
  if (auto embedding = dyn_cast<EmbeddingOp>(op))
    return embedding.getTable() == operand;
  if (!isa<LinearOp, GatedMlpOp, MlpOp>(op))
    return false;
  return number > 0 && cast<RankedTensorType>(operand.getType()).getRank() == 2;
}

/// Why the parameter that `reads` read stays as it is, or an empty string.
static StringRef getObstacle(ParamOp param, ArrayRef<GetParamOp> reads) {
  RankedTensorType type = param.getTensorType();
  if (type.getRank() != 2 || !type.getElementType().isF32())
    return "it is no matrix of f32";
  if (type.getEncoding() && !isa<StoredAttr>(type.getEncoding()))
    return "it has another encoding already";
  for (GetParamOp read : reads)
    for (OpOperand &use : read->getUses())
      if (!takesEncoding(use.getOwner(), use.getOperandNumber()))
        return "something other than products and embeddings reads it";
  return "";
}

static void convert(ParamOp param, ArrayRef<GetParamOp> reads, FloatType elements) {
  RankedTensorType type = param.getTensorType();
  auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding());
  auto encoding = StoredAttr::get(elements, stored && stored.getTransposed());
  auto converted = RankedTensorType::get(type.getShape(), type.getElementType(), encoding);
  if (!isa<ConvertedAttr>(param.getStorage()))
    param.setStorageAttr(ConvertedAttr::get(param.getContext(), type, param.getStorage()));
  param.setType(converted);
  for (GetParamOp read : reads)
    read.getResult().setType(converted);
}

namespace {
struct ConvertWeights : impl::ConvertWeightsBase<ConvertWeights> {
  using ConvertWeightsBase::ConvertWeightsBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (type == "f16")
      elements = Float16Type::get(context);
    else if (type == "bf16")
      elements = BFloat16Type::get(context);
    else
      return emitError(UnknownLoc::get(context))
             << "unsupported type '" << type << "' to store weights in; supported: bf16, f16";
    return success();
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::MapVector<Operation *, SmallVector<GetParamOp>> reads;
    getOperation()->walk([&](GetParamOp get) { reads[symbols.lookup(get.getName())].push_back(get); });
    auto options = remark::RemarkOpts::name("Converted").category("hone-convert-weights");
    for (auto &[op, readers] : reads) {
      auto param = cast<ParamOp>(op);
      StringRef obstacle = getObstacle(param, readers);
      if (!obstacle.empty()) {
        remark::missed(param.getLoc(), options) << (param.getSymName() + " stays as it is: " + obstacle).str();
        continue;
      }
      convert(param, readers, elements);
      ++numConverted;
      remark::passed(param.getLoc(), options) << (param.getSymName() + " is stored as " + type).str();
    }
  }

private:
  FloatType elements;
};
} // namespace

} // namespace hone
