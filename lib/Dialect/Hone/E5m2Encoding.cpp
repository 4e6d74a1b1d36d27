// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hone.e5m2: the upper halves of f16.

#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hone/PlainElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace hone;

LogicalResult E5m2Attr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                       llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (!elementType) // what the parser could not read
    return failure();
  if (shape.size() != 2 || !elementType.isF32()) // e5m2 C1
    return emitError() << "expected a tensor of e5m2 to have 2 dimensions and elements of f32, but got " << shape.size()
                       << " and " << elementType;
  return success();
}

SmallVector<EncodingPlane> E5m2Attr::getPlanes(ArrayRef<int64_t> shape, Type) const {
  return {{"values", RankedTensorType::get(shape, IntegerType::get(getContext(), 8))}};
}

/// A NaN stays one.
static uint8_t round(float value) {
  auto bits = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  if ((bits & 0x7fff) > 0x7c00)
    return static_cast<uint8_t>(bits >> 8 | 2);
  return static_cast<uint8_t>((bits + 0x7f + (bits >> 8 & 1)) >> 8);
}

LogicalResult E5m2Attr::pack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<char> dense,
                             ArrayRef<MutableArrayRef<char>> planes, llvm::function_ref<InFlightDiagnostic()>) const {
  PlainElements from(elementType);
  for (auto [i, byte] : llvm::enumerate(planes[0]))
    byte = static_cast<char>(round(from.load(dense, i)));
  return success();
}

void E5m2Attr::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                      MutableArrayRef<char> dense) const {
  PlainElements to(elementType);
  for (auto [i, byte] : llvm::enumerate(planes[0]))
    to.store(dense, i,
             static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(static_cast<uint8_t>(byte) << 8))));
}

Value E5m2Attr::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                             ValueRange indices) const {
  Value byte = tensor::ExtractOp::create(builder, loc, planes[0], indices);
  Value word = arith::ExtUIOp::create(builder, loc, builder.getI16Type(), byte);
  Value eight = arith::ConstantOp::create(builder, loc, builder.getI16IntegerAttr(8));
  Value half = arith::BitcastOp::create(builder, loc, builder.getF16Type(),
                                        arith::ShLIOp::create(builder, loc, word, eight));
  return arith::ExtFOp::create(builder, loc, elementType, half);
}

std::string E5m2Attr::getKernelSuffix() const { return "e5m2"; }
