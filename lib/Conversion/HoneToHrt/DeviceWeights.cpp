// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a device reads of the weights file. Constants of different elements (weights of norms, tables) lie there too, since the file
// is brought to a device once, and not in the program, from where each call would bring them.

#include "DeviceWeights.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneParams.h"

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

/// Why the parameter that `reads` read stays as it is, or an empty string.
static std::string getBlocker(ParamOp param, ArrayRef<GetParamOp> reads) {
  auto stored = dyn_cast_or_null<StoredAttr>(param.getTensorType().getEncoding());
  if (param.getTensorType().getRank() != 2 || !stored || !stored.getTransposed())
    return "it is no matrix that lies input after input";
  return getProductBlocker(reads);
}

void transposeWeights(ModuleOp module) {
  auto change = [](ParamOp param, ArrayRef<GetParamOp> reads) -> std::string {
    changeEncoding(param, reads, StoredAttr::get(cast<StoredAttr>(param.getTensorType().getEncoding()).getType()));
    return "lies in rows of outputs";
  };
  // No change fails.
  (void)changeParameters(module, {"hone-convert-hone-to-hrt", "Transposed", "stays as it is", getBlocker, change});
}

} // namespace hone
