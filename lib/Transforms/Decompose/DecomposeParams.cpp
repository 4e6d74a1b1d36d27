//===- DecomposeParams.cpp - unpacking of encoded tensors -------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace hone;

EncodedReader::EncodedReader(LocBuilder &builder, Value tensor)
    : tensor(tensor),
      encoding(dyn_cast_or_null<EncodingInterface>(cast<RankedTensorType>(tensor.getType()).getEncoding())) {
  if (encoding)
    llvm::append_range(planes, PlanesOp::create(builder, tensor).getPlanes());
}

Value EncodedReader::read(LocBuilder &builder, ValueRange indices) const {
  if (!encoding)
    return tensor::ExtractOp::create(builder, tensor, indices);
  Type elements = cast<RankedTensorType>(tensor.getType()).getElementType();
  return encoding.buildElement(builder, builder.getLoc(), elements, planes, indices);
}

Value hone::getPlain(LocBuilder &builder, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!isa_and_nonnull<EncodingInterface>(type.getEncoding()))
    return tensor;
  EncodedReader reader(builder, tensor);
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), tensor);
  return buildMap(builder, sizes, type.getElementType(), {}, [&](LocBuilder &b, ValueRange) {
    SmallVector<Value> indices;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      indices.push_back(linalg::IndexOp::create(b, dim));
    return reader.read(b, indices);
  });
}

static Value decomposeUnpack(LocBuilder &builder, UnpackOp op) { return getPlain(builder, op.getTensor()); }

void hone::addParamDecompositions(RewritePatternSet &patterns) {
  addDecomposition<UnpackOp>(patterns, decomposeUnpack);
}
