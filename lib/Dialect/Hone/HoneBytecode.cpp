//===- HoneBytecode.cpp - attributes of the hone dialect in bytecode ----------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A code first, then the parameters of that attribute.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "HoneBytecode.h"

#include "hone/Dialect/Hone/HoneTypes.h"

using namespace mlir;
using namespace hone;

/// ConvertedAttr { type: Type, storage: Attribute }
static constexpr uint64_t kConvertedCode = 0;
/// StackedAttr { type: Type, parts: Attribute }
static constexpr uint64_t kStackedCode = 1;

LogicalResult HoneBytecode::writeAttribute(Attribute attribute, DialectBytecodeWriter &writer) const {
  if (auto converted = dyn_cast<ConvertedAttr>(attribute)) {
    writer.writeVarInt(kConvertedCode);
    writer.writeType(converted.getType());
    writer.writeAttribute(converted.getStorage());
    return success();
  }
  auto stacked = dyn_cast<StackedAttr>(attribute);
  if (!stacked)
    return failure();
  writer.writeVarInt(kStackedCode);
  writer.writeType(stacked.getType());
  writer.writeAttribute(stacked.getParts());
  return success();
}

Attribute HoneBytecode::readAttribute(DialectBytecodeReader &reader) const {
  uint64_t code;
  if (failed(reader.readVarInt(code)))
    return {};
  if (code != kConvertedCode && code != kStackedCode) {
    reader.emitError() << "unsupported code " << code << " of an attribute of hone; supported: " << kConvertedCode
                       << ", " << kStackedCode;
    return {};
  }
  RankedTensorType type;
  Attribute storage;
  if (failed(reader.readType(type)) || failed(reader.readAttribute(storage)))
    return {};
  auto emitError = [&] { return reader.emitError(); };
  if (code == kConvertedCode)
    return ConvertedAttr::getChecked(emitError, getContext(), type, storage);
  auto parts = dyn_cast<ArrayAttr>(storage);
  if (!parts) {
    reader.emitError() << "expected the parts of what is stacked to be an array, but got " << storage;
    return {};
  }
  return StackedAttr::getChecked(emitError, getContext(), type, parts);
}
