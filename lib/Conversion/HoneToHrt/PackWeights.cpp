// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-pack-weights: matrices that only products read get the layout that the CPU's kernels read. An embedding may
// read such a matrix too: it takes single elements from where they lie.

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace hone {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

/// True if `use` is as a weight of a product whose other operands are f32.
static bool isProductWeight(OpOperand &use) {
  Operation *user = use.getOwner();
  if (!isa<LinearOp, GatedMlpOp, MlpOp>(user))
    return false;
  auto isF32 = [](Value value) { return cast<RankedTensorType>(value.getType()).getElementType().isF32(); };
  return use.getOperandNumber() > 0 && llvm::all_of(user->getOperands(), isF32);
}

static bool isTable(OpOperand &use) {
  auto embedding = dyn_cast<EmbeddingOp>(use.getOwner());
  return embedding && embedding.getTable() == use.get();
}

/// Why the parameter that `reads` read stays as it is, or an empty string.
static StringRef getObstacle(ParamOp param, ArrayRef<GetParamOp> reads) {
  RankedTensorType type = param.getTensorType();
  if (type.getRank() != 2 || !type.getElementType().isF32())
    return "it is no matrix of f32";
  if (type.getEncoding() && !isa<StoredAttr>(type.getEncoding()))
    return "its encoding is not one of plain elements";
  bool isMultiplied = false;
  for (GetParamOp read : reads)
    for (OpOperand &use : read->getUses()) {
      if (!isProductWeight(use) && !isTable(use))
        return "something other than products and embeddings reads it";
      isMultiplied |= isProductWeight(use);
    }
  return isMultiplied ? "" : "no product reads it";
}

static void pack(ParamOp param, ArrayRef<GetParamOp> reads) {
  RankedTensorType type = param.getTensorType();
  auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding());
  auto elements = stored ? stored.getType() : cast<FloatType>(type.getElementType());
  auto packed = RankedTensorType::get(type.getShape(), type.getElementType(), hrt::PanelsAttr::get(elements));
  // What is converted already is converted once, from its source.
  if (!isa<ConvertedAttr>(param.getStorage()))
    param.setStorageAttr(ConvertedAttr::get(param.getContext(), type, param.getStorage()));
  param.setType(packed);
  for (GetParamOp read : reads)
    read.getResult().setType(packed);
}

namespace {
struct PackWeights : impl::PackWeightsBase<PackWeights> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::MapVector<Operation *, SmallVector<GetParamOp>> reads;
    getOperation().walk([&](GetParamOp get) { reads[symbols.lookup(get.getName())].push_back(get); });
    for (auto &[op, readers] : reads) {
      auto param = cast<ParamOp>(op);
      StringRef obstacle = getObstacle(param, readers);
      auto options = remark::RemarkOpts::name("Packed").category("hone-pack-weights");
      if (!obstacle.empty()) {
        remark::missed(param.getLoc(), options) << (param.getSymName() + " is not packed: " + obstacle).str();
        continue;
      }
      pack(param, readers);
      ++numPacked;
      remark::passed(param.getLoc(), options) << (param.getSymName() + " is packed").str();
    }
  }
};
} // namespace

} // namespace hone
