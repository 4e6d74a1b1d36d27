// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-pack-weights: matrices that only products read get the layout that the CPU's kernels read. An embedding may
// read such a matrix too: it takes single elements from where they lie.

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

namespace hone {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

/// True if `use` is as a weight of a product whose other numbers are f32.
static bool isProductWeight(OpOperand &use) {
  auto isF32 = [](Value value) {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    return element.isF32() || isa<IntegerType>(element);
  };
  std::optional<WeightUse> weight = findWeight(use);
  return weight && weight->inputs != WeightInputs::Numbers && llvm::all_of(use.getOwner()->getOperands(), isF32);
}

/// Why the parameter that `reads` read stays as it is, or an empty string.
static std::string getBlocker(ParamOp param, ArrayRef<GetParamOp> reads) {
  RankedTensorType type = param.getTensorType();
  if (type.getRank() != 2 || !type.getElementType().isF32())
    return "it is no matrix of f32";
  if (!hrt::PanelsAttr::canPack(type.getEncoding()))
    return "no kernel reads its encoding";
  if (llvm::any_of(param->getParentOfType<ModuleOp>().getOps<StateOp>(),
                   [&](StateOp state) { return state.beginsWith(param.getSymName()); }))
    return "a state begins with it";
  bool isMultiplied = false;
  for (GetParamOp read : reads)
    for (OpOperand &use : read->getUses()) {
      if (!isProductWeight(use) && !isLookedUp(use))
        return "something other than products and embeddings reads it";
      isMultiplied |= isProductWeight(use);
    }
  return isMultiplied ? "" : "no product reads it";
}

/// The layout of kernels for a weight of the type.
static hrt::PanelsAttr getPanels(RankedTensorType type) {
  if (auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding()))
    return hrt::PanelsAttr::get(stored.getType());
  if (Attribute encoding = type.getEncoding())
    return hrt::PanelsAttr::get(encoding);
  return hrt::PanelsAttr::get(cast<FloatType>(type.getElementType()));
}

namespace {
struct PackWeights : impl::PackWeightsBase<PackWeights> {
  void runOnOperation() override {
    auto change = [](ParamOp param, ArrayRef<GetParamOp> reads) -> std::string {
      changeEncoding(param, reads, getPanels(param.getTensorType()));
      return "is packed";
    };
    auto packed =
        changeParameters(getOperation(), {"hone-pack-weights", "Packed", "is not packed", getBlocker, change});
    numPacked += *packed; // no change fails
  }
};
} // namespace

} // namespace hone
