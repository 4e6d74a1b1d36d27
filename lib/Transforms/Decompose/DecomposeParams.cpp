//===- DecomposeParams.cpp - unpacking of encoded tensors -------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

using namespace mlir;
using namespace hone;

Value hone::getPlain(LocBuilder &builder, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto encoding = dyn_cast_or_null<EncodingInterface>(type.getEncoding());
  if (!encoding)
    return tensor;
  auto planes = PlanesOp::create(builder, tensor);
  return encoding.buildUnpack(builder, builder.getLoc(), getPlainType(type), planes.getPlanes());
}

static Value decomposeUnpack(LocBuilder &builder, UnpackOp op) { return getPlain(builder, op.getTensor()); }

void hone::addParamDecompositions(RewritePatternSet &patterns) {
  addDecomposition<UnpackOp>(patterns, decomposeUnpack);
}
