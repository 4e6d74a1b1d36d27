// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a device reads of the weights file. Constants of different elements (weights of norms, tables) lie there too, since the file
// is brought to a device once, and not in the program, from where each call would bring them.

#include "DeviceWeights.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace hone {

static bool isOutlined(arith::ConstantOp constant) {
  auto elements = dyn_cast<ElementsAttr>(constant.getValue());
  if (!elements || elements.isSplat() || !isa<RankedTensorType>(constant.getType()))
    return false;
  Type type = elements.getElementType();
  return type.isIntOrFloat() && type.getIntOrFloatBitWidth() % 8 == 0; // elements of a byte at least
}

void outlineConstants(ModuleOp module) {
  SmallVector<arith::ConstantOp> constants;
  module.walk([&](arith::ConstantOp constant) {
    if (isOutlined(constant))
      constants.push_back(constant);
  });
  SymbolTable symbols(module);
  llvm::DenseMap<Attribute, ParamOp> params;
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  for (arith::ConstantOp constant : constants) {
    ParamOp &param = params[constant.getValue()];
    if (!param) {
      param = ParamOp::create(top, constant.getLoc(), "constant", cast<RankedTensorType>(constant.getType()),
                              constant.getValue());
      symbols.insert(param);
    }
    OpBuilder b(constant);
    constant.replaceAllUsesWith(
        GetParamOp::create(b, constant.getLoc(), param.getTensorType(), param.getSymName()).getResult());
    constant.erase();
  }
}

/// The encoding that kernels read a matrix in, or null where that is the one that it has, or there is none.
static Attribute getLayout(ParamOp param) {
  Attribute encoding = param.getTensorType().getEncoding();
  if (param.getTensorType().getRank() != 2)
    return {};
  if (auto stored = dyn_cast_or_null<StoredAttr>(encoding); stored && stored.getTransposed())
    return StoredAttr::get(stored.getType());
  if (hrt::ChunksAttr::canPack(encoding) && param.getTensorType().getElementType().isF32())
    return hrt::ChunksAttr::get(cast<AffineAttr>(encoding));
  return {};
}

/// Why the parameter that `reads` read stays as it is, or an empty string.
static std::string getObstacle(ParamOp param, ArrayRef<GetParamOp> reads) {
  if (!getLayout(param))
    return "it is as kernels read it, or none does";
  bool isMultiplied = false;
  for (GetParamOp read : reads)
    for (OpOperand &use : read->getUses()) {
      if (!takesEncoding(use))
        return "something other than products and embeddings reads it";
      isMultiplied |= !isa<EmbeddingOp>(use.getOwner());
    }
  return isMultiplied ? "" : "no product reads it";
}

void layOutWeights(ModuleOp module) {
  auto change = [](ParamOp param, ArrayRef<GetParamOp> reads) -> std::string {
    changeEncoding(param, reads, getLayout(param));
    return "lies in rows of outputs";
  };
  // No change fails.
  (void)changeParameters(module, {"hone-convert-hone-to-hrt", "LaidOut", "stays as it is", getObstacle, change});
}

} // namespace hone
