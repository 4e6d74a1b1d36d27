// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attribute `hone.input_rotation`.

#include "hone/Dialect/Hone/InputRotation.h"

using namespace mlir;

namespace hone {

std::optional<InputRotation> getInputRotation(ParamOp param) {
  auto rotation = param->getAttrOfType<DictionaryAttr>(kInputRotationName);
  if (!rotation)
    return std::nullopt;
  auto block = rotation.getAs<IntegerAttr>("block");
  return InputRotation{rotation.getAs<DenseF32ArrayAttr>("gain").asArrayRef(),
                       rotation.getAs<IntegerAttr>("seed").getInt(), block ? block.getInt() : 0};
}

void noteInputRotation(ParamOp param, InputRotation rotation) {
  Builder b(param.getContext());
  SmallVector<NamedAttribute> members = {b.getNamedAttr("gain", b.getDenseF32ArrayAttr(rotation.gain)),
                                         b.getNamedAttr("seed", b.getI64IntegerAttr(rotation.seed))};
  if (rotation.block > 0)
    members.push_back(b.getNamedAttr("block", b.getI64IntegerAttr(rotation.block)));
  param->setAttr(kInputRotationName, b.getDictionaryAttr(members));
}

} // namespace hone
