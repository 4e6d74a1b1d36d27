//===- HoneStorage.cpp - the bytes of a tensor type ---------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes never wrap around: what does not fit 63 bits has none.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneStorage.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace hone;

int64_t hone::getElementBytes(Type element) {
  if (auto complex = dyn_cast<ComplexType>(element))
    return 2 * getElementBytes(complex.getElementType());
  return element.isIntOrFloat() ? (element.getIntOrFloatBitWidth() + 7) / 8 : 0;
}

std::optional<int64_t> hone::getDenseBytes(RankedTensorType type) {
  std::optional<int64_t> bytes = getElementBytes(type.getElementType());
  if (*bytes == 0 || !type.hasStaticShape())
    return std::nullopt;
  for (int64_t size : type.getShape())
    if (!(bytes = llvm::checkedMul(*bytes, size)))
      return std::nullopt;
  return bytes;
}

std::optional<int64_t> hone::getStorageBytes(RankedTensorType type) {
  int64_t sum = 0;
  for (const EncodingPlane &plane : getPlanes(type)) {
    std::optional<int64_t> bytes = getDenseBytes(plane.type);
    std::optional<int64_t> next = bytes ? llvm::checkedAdd(sum, *bytes) : std::nullopt;
    if (!next)
      return std::nullopt;
    sum = *next;
  }
  return sum;
}

/// Bits of every element, one byte each.
static std::string getNarrowElements(DenseElementsAttr value) {
  std::string bytes;
  bytes.reserve(value.getNumElements());
  if (isa<FloatType>(value.getElementType()))
    for (const APFloat &element : value.getValues<APFloat>())
      bytes.push_back(static_cast<char>(element.bitcastToAPInt().getZExtValue()));
  else if (value.getElementType().isSignlessInteger(1))
    for (bool element : value.getValues<bool>())
      bytes.push_back(element);
  else
    for (const APInt &element : value.getValues<APInt>())
      bytes.push_back(static_cast<char>(value.getElementType().isUnsignedInteger() ? element.getZExtValue()
                                                                                   : element.getSExtValue()));
  return bytes;
}

std::string hone::getElements(DenseElementsAttr value) {
  Type element = value.getElementType();
  if (element.isIntOrFloat() && element.getIntOrFloatBitWidth() < 8)
    return getNarrowElements(value);
  ArrayRef<char> raw = value.getRawData();
  int64_t copies = value.isSplat() ? value.getNumElements() : 1;
  std::string bytes;
  bytes.reserve(raw.size() * copies);
  for (int64_t i = 0; i < copies; ++i)
    bytes.append(raw.data(), raw.size());
  return bytes;
}
