//===- HoneDialect.cpp - registration of the hone dialect -------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Also checks the attributes of the dialect that modules and parameters have.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "HoneBytecode.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hone/InputRotation.h"
#include "hone/Dialect/Hone/Lookups.h"
#include "hone/Dialect/Hone/Retention.h"
#include "hone/Dialect/Hone/ScratchBytes.h"
#include "hone/Dialect/Hone/Shards.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;
using namespace hone;

#include "hone/Dialect/Hone/HoneDialect.cpp.inc"

void HoneDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "hone/Dialect/Hone/HoneOps.cpp.inc"
      >();
  addInterfaces<HoneBytecode, ScratchBytes>();
}

static LogicalResult verifyChannelScales(Operation *op, Attribute value) {
  auto param = dyn_cast<ParamOp>(op);
  auto scales = dyn_cast<DenseF32ArrayAttr>(value);
  if (!param || !scales)
    return op->emitOpError() << "expected 'hone.channel_scales' to be an array of f32 on a parameter";
  RankedTensorType type = param.getTensorType();
  if (type.getRank() != 2 || type.getDimSize(1) != scales.size())
    return op->emitOpError() << "expected 'hone.channel_scales' to have an element for each input, but got "
                             << scales.size() << " for " << type;
  if (!llvm::all_of(scales.asArrayRef(), [](float scale) { return std::isfinite(scale) && scale > 0; }))
    return op->emitOpError() << "expected 'hone.channel_scales' to be finite and more than 0";
  return success();
}

static LogicalResult verifyInputs(Operation *op, Attribute attribute) {
  auto param = dyn_cast<ParamOp>(op);
  auto inputs = dyn_cast<DictionaryAttr>(attribute);
  auto all = inputs ? inputs.getAs<IntegerAttr>("of") : IntegerAttr();
  auto kept = inputs ? inputs.getAs<DenseI64ArrayAttr>("kept") : DenseI64ArrayAttr();
  bool isRight = param && param.getTensorType().getRank() == 2 && all && kept && inputs.size() == 2;
  int64_t rows = isRight ? param.getTensorType().getDimSize(0) : 0,
          columns = isRight ? param.getTensorType().getDimSize(1) : 0;
  // Those of all rows, or of as many for each expert that has a part of the rows.
  int64_t experts = isRight && columns > 0 ? std::max<int64_t>(kept.size() / columns, 1) : 1;
  isRight &= kept && kept.size() == experts * columns && rows % experts == 0;
  llvm::DenseSet<int64_t> seen;
  for (int64_t i = 0; isRight && i < kept.size(); ++i) {
    if (i % columns == 0)
      seen.clear();
    isRight = kept[i] >= 0 && kept[i] < all.getInt() && seen.insert(kept[i]).second;
  }
  if (!isRight)
    return op->emitOpError() << "expected 'hone.inputs' to say of the inputs of a matrix which ones of how many "
                                "they were, as {kept = array<i64: …>, of = …}";
  return success();
}

static LogicalResult verifyJoined(Operation *op, Attribute attribute) {
  auto param = dyn_cast<ParamOp>(op);
  auto names = dyn_cast<ArrayAttr>(attribute);
  bool isRight = param && param.getTensorType().getRank() > 0 && names && !names.empty() &&
                 llvm::all_of(names, llvm::IsaPred<StringAttr>) &&
                 param.getTensorType().getDimSize(0) % static_cast<int64_t>(names.size()) == 0;
  if (!isRight)
    return op->emitOpError() << "expected 'hone.joined' to be the names of the parameters that one joins, as strings";
  return success();
}

static LogicalResult verifyInputRotation(Operation *op, Attribute attribute) {
  auto param = dyn_cast<ParamOp>(op);
  auto rotation = dyn_cast<DictionaryAttr>(attribute);
  auto gain = rotation ? rotation.getAs<DenseF32ArrayAttr>("gain") : DenseF32ArrayAttr();
  auto block = rotation ? rotation.getAs<IntegerAttr>("block") : IntegerAttr();
  bool isRight = param && param.getTensorType().getRank() == 2 && gain && rotation.getAs<IntegerAttr>("seed") &&
                 rotation.size() == (block ? 3 : 2) &&
                 (gain.empty() || gain.size() == param.getTensorType().getDimSize(1)) &&
                 (!block || (block.getInt() > 0 && llvm::isPowerOf2_64(block.getInt()) &&
                             param.getTensorType().getDimSize(1) % block.getInt() == 0));
  if (!isRight || !llvm::all_of(gain.asArrayRef(), [](float one) { return std::isfinite(one) && one != 0; }))
    return op->emitOpError()
           << "expected 'hone.input_rotation' to say how the inputs of a matrix were rotated, as {gain "
              "= array<f32: …>, seed = …}, with numbers other than 0 for each of them or none, and with block = … "
              "where that "
              "is a power of two that divides their number";
  return success();
}

LogicalResult HoneDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (attribute.getName() == kLookupRowsAttrName)
    return success();
  if (attribute.getName() != getContextAttrName())
    return op->emitOpError() << "unsupported attribute '" << attribute.getName().getValue()
                             << "' of an argument; supported: hone.context, hone.rows";
  bool isTensor = function && isa<TensorType>(function.getArgumentTypes()[index]);
  if (isTensor && isa<UnitAttr>(attribute.getValue()))
    return success();
  return op->emitOpError()
         << "expected 'hone.context' to be a unit attribute of a function's argument that is a tensor";
}

LogicalResult HoneDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == getModelAttrName()) {
    if (!isa<ModuleOp>(op) || !isa<StringAttr>(attribute.getValue()))
      return op->emitOpError() << "expected 'hone.model' to be a string on a module";
    return success();
  }
  if (attribute.getName() == kChannelScalesName)
    return verifyChannelScales(op, attribute.getValue());
  if (attribute.getName() == kInputRotationName)
    return verifyInputRotation(op, attribute.getValue());
  if (attribute.getName() == kInputsAttrName)
    return verifyInputs(op, attribute.getValue());
  if (attribute.getName() == kJoinedAttrName)
    return verifyJoined(op, attribute.getValue());
  if (attribute.getName() == kEncodingAttr) {
    if (!isa<ParamOp>(op) || !isa<EncodingInterface>(attribute.getValue()))
      return op->emitOpError() << "expected 'hone.encoding' to be an encoding on a hone.param";
    return success();
  }
  if (attribute.getName() == kShardsAttrName) {
    auto shards = dyn_cast<ArrayAttr>(attribute.getValue());
    if (!isa<ParamOp>(op) || !shards || shards.empty())
      return op->emitOpError() << "expected 'hone.shards' to be what each rank stores, as an array on a hone.param";
    return success();
  }
  if (attribute.getName() == kPositionLimitsAttrName) {
    if (!isa<FunctionOpInterface>(op) || !getPositionLimits(attribute.getValue()))
      return op->emitOpError() << "expected 'hone.limits' to be an array of {most, sizes, table} on a function";
    return success();
  }
  if (attribute.getName() == kRetentionAttrName) {
    std::optional<Retention> retention = Retention::get(attribute.getValue());
    auto state = dyn_cast<StateOp>(op);
    auto isOfState = [&](const LayerRetention &layer) {
      int64_t last = std::max({layer.keys, layer.values, layer.queries.value_or(0)});
      return last < static_cast<int64_t>(state.getSlots().size());
    };
    if (!state || !retention || !llvm::all_of(retention->layers, isOfState))
      return op->emitOpError()
             << "expected 'hone.retention' to be {block, pooling, layers} on a hone.state, with layers "
                "{keys, values, budget, sinks, recent} of its slots";
    return success();
  }
  return op->emitOpError() << "unsupported attribute '" << attribute.getName().getValue()
                           << "' of the hone dialect; supported: hone.channel_scales, hone.encoding, "
                              "hone.input_rotation, hone.inputs, hone.joined, hone.limits, hone.model, "
                              "hone.retention, hone.shards";
}
