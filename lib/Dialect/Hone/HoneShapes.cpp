//===- HoneShapes.cpp - how the shape of a result follows from its operands -------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneShapes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace hone;

LogicalResult hone::detail::inferType(StringRef op, std::optional<Location> location, TypeRange operands,
                                      const FailureOr<ResultDims> &dims, unsigned elementOperand,
                                      SmallVectorImpl<Type> &types) {
  if (failed(dims))
    return emitOptionalError(location, "'", op, "' op cannot infer the result's shape from operands ", operands);
  SmallVector<int64_t> shape;
  for (ResultDim dim : *dims)
    shape.push_back(cast<RankedTensorType>(operands[dim.operand]).getDimSize(dim.dim));
  Type elements = cast<RankedTensorType>(operands[elementOperand]).getElementType();
  types.push_back(RankedTensorType::get(shape, elements));
  return success();
}

bool hone::detail::areCompatible(TypeRange inferred, TypeRange actual) {
  return llvm::all_of_zip(inferred, actual, [](Type a, Type b) {
    auto left = dyn_cast<RankedTensorType>(a), right = dyn_cast<RankedTensorType>(b);
    return left && right && left.getElementType() == right.getElementType() &&
           left.getEncoding() == right.getEncoding() && succeeded(verifyCompatibleShape(left, right));
  });
}

LogicalResult hone::detail::reifyShape(OpBuilder &builder, Operation *op, const FailureOr<ResultDims> &dims,
                                       ReifiedRankedShapedTypeDims &shapes) {
  if (failed(dims))
    return failure();
  auto result = cast<RankedTensorType>(op->getResult(shapes.size()).getType()); // the next that has no shape yet
  auto &shape = shapes.emplace_back();
  for (auto [i, dim] : llvm::enumerate(*dims)) {
    if (result.isDynamicDim(i))
      shape.push_back(tensor::getMixedSize(builder, op->getLoc(), op->getOperand(dim.operand), dim.dim));
    else
      shape.push_back(builder.getIndexAttr(result.getDimSize(i)));
  }
  return success();
}
