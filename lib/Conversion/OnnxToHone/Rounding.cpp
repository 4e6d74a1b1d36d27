// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roundings as attributes, one for each result.

#include "Rounding.h"

using namespace mlir;

namespace hone::raising {

static std::string getName(OpResult result) { return "onnx.rounding." + std::to_string(result.getResultNumber()); }

DictionaryAttr getRounding(Value value) {
  auto result = dyn_cast<OpResult>(value);
  return result ? result.getOwner()->getAttrOfType<DictionaryAttr>(getName(result)) : DictionaryAttr();
}

void setRounding(Value value, DictionaryAttr rounding) {
  auto result = cast<OpResult>(value);
  if (rounding)
    result.getOwner()->setAttr(getName(result), rounding);
  else
    result.getOwner()->removeAttr(getName(result));
}

Value keepRounding(Value value, Value with) {
  DictionaryAttr rounding = getRounding(value);
  if (!rounding || rounding == getRounding(with))
    return with;
  if (!isa<OpResult>(with) || !with.use_empty() || getRounding(with)) {
    OpBuilder b(value.getContext());
    b.setInsertionPointAfterValue(with);
    with = OnnxBuilder(b, value.getLoc()).create("Identity", with, with.getType());
  }
  setRounding(with, rounding);
  return with;
}

bool movesElements(Operation *op) {
  static const StringRef names[] = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Expand",
                                    "Slice",   "Split",     "Gather",  "Identity",  "Concat"};
  return onnxir::isOnnxOp(op) && onnxir::getDomain(op).empty() && llvm::is_contained(names, onnxir::getOpType(op));
}

Value dequantize(OnnxBuilder &onnx, const Codes &from, int64_t axis) {
  SmallVector<Value> operands{from.codes, from.scale};
  if (from.zero)
    operands.push_back(from.zero);
  auto type = cast<TensorType>(from.codes.getType()).clone(getElementTypeOrSelf(from.scale));
  return onnx.create("DequantizeLinear", operands, type, onnx.integerAttr("axis", axis));
}

Value quantize(OnnxBuilder &onnx, Value floats, const Codes &like) {
  SmallVector<Value> operands{floats, like.scale};
  if (like.zero)
    operands.push_back(like.zero);
  return onnx.create("QuantizeLinear", operands, like.codes.getType());
}

bool isPerTensor(Value scale, Value zero) {
  auto isOne = [](Value value) {
    RankedTensorType type = getRankedType(value);
    return type && type.hasStaticShape() && type.getNumElements() == 1;
  };
  return isOne(scale) && (!zero || isOne(zero));
}

} // namespace hone::raising
