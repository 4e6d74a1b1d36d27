// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-pack-weights: matrices that only products and convolutions read get the layout that the CPU's kernels read. An embedding may
// read such a matrix too: it takes single elements from where they lie.

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/cpu/packing/layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

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

//===----------------------------------------------------------------------===//
// Weights of convolutions
//===----------------------------------------------------------------------===//

/// Whether a kernel with output channels as lanes takes the convolution: lanes are filled well, and panels belong to one group each, or
/// are depthwise.
static bool hasPanels(ConvolutionOp op) {
  constexpr int64_t least = 12;
  RankedTensorType weight = op.getWeight().getType();
  int64_t groups = op.getGroups(), outputs = weight.getDimSize(0);
  if (groups > 1 && weight.getDimSize(1) == llvm::product_of(op.getKernel()))
    return outputs >= least;
  return outputs / groups >= least && (groups == 1 || outputs / groups % cpu::kPanelOutputs == 0);
}

static bool isConvolved(OpOperand &use) {
  auto op = dyn_cast<ConvolutionOp>(use.getOwner());
  return op && &use == &op.getWeightMutable() && hasPanels(op);
}

/// `storage` as that of a tensor of `type`, which has as many elements of the same kind; null where it is not one array of bytes.
static Attribute reshapeStorage(Attribute storage, RankedTensorType type) {
  if (auto elements = dyn_cast<DenseElementsAttr>(storage))
    return elements.reshape(type);
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(storage))
    return DenseResourceElementsAttr::get(type, resource.getRawHandle());
  return isa<ExternalAttr>(storage) ? storage : Attribute();
}

namespace {
/// Weights of convolutions, which models keep with a dimension for each axis of the kernel or as constants, as matrices among the
/// parameters.
class WeightMatrices {
public:
  explicit WeightMatrices(ModuleOp module) : module(module), symbols(module) {}

  void run() {
    module.walk([&](ConvolutionOp op) {
      if (hasPanels(op) && !op.getWeight().getType().getEncoding())
        name(op);
    });
    for (ParamOp original : originals)
      if (SymbolTable::symbolKnownUseEmpty(original, module))
        symbols.erase(original);
  }

private:
  void name(ConvolutionOp op) {
    RankedTensorType type = op.getWeight().getType();
    Operation *producer = op.getWeight().getDefiningOp();
    Attribute storage;
    std::string symbol = "convolution";
    const void *key = producer;
    if (auto constant = dyn_cast_or_null<arith::ConstantOp>(producer)) {
      storage = constant.getValue();
      key = storage.getAsOpaquePointer();
    } else if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(producer)) {
      auto read = collapse.getSrc().getDefiningOp<GetParamOp>();
      auto original = read ? symbols.lookup<ParamOp>(read.getName()) : ParamOp();
      if (!original || original.getTensorType().getEncoding())
        return;
      storage = original.getStorage();
      symbol = (original.getSymName() + ".matrix").str();
      key = original;
      originals.insert(original);
    }
    storage = storage ? reshapeStorage(storage, type) : Attribute();
    if (!storage)
      return;
    ParamOp &param = params[{key, type}];
    if (!param) {
      OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
      param = ParamOp::create(b, op.getLoc(), symbol, type, storage);
      symbols.insert(param);
    }
    OpBuilder b(op);
    op.getWeightMutable().assign(GetParamOp::create(b, op.getLoc(), type, param.getSymName()));
    if (producer->use_empty())
      erase(producer);
  }

  static void erase(Operation *op) {
    Operation *source = op->getNumOperands() == 1 ? op->getOperand(0).getDefiningOp() : nullptr;
    op->erase();
    if (source && source->use_empty())
      source->erase();
  }

  ModuleOp module;
  SymbolTable symbols;
  llvm::DenseMap<std::pair<const void *, Type>, ParamOp> params; // by where the elements are
  llvm::SetVector<ParamOp> originals;
};
} // namespace

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

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
      bool isWeight = isProductWeight(use) || isConvolved(use);
      if (!isWeight && !isLookedUp(use))
        return "something other than products, convolutions and embeddings reads it";
      isMultiplied |= isWeight;
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
    WeightMatrices(getOperation()).run();
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
