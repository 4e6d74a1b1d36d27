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

LogicalResult HoneBytecode::writeAttribute(Attribute attribute, DialectBytecodeWriter &writer) const {
  auto converted = dyn_cast<ConvertedAttr>(attribute);
  if (!converted)
    return failure();
  writer.writeVarInt(kConvertedCode);
  writer.writeType(converted.getType());
  writer.writeAttribute(converted.getStorage());
  return success();
}

Attribute HoneBytecode::readAttribute(DialectBytecodeReader &reader) const {
  uint64_t code;
  if (failed(reader.readVarInt(code)))
    return {};
  if (code != kConvertedCode) {
    reader.emitError() << "unsupported code " << code << " of an attribute of hone; supported: " << kConvertedCode;
    return {};
  }
  RankedTensorType type;
  Attribute storage;
  if (failed(reader.readType(type)) || failed(reader.readAttribute(storage)))
    return {};
  return ConvertedAttr::getChecked([&] { return reader.emitError(); }, getContext(), type, storage);
}
