// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A matrix has the bytes of all its parts in order, so that only types change.

#include "ExpertWeights.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace hone::raising {

/// `storage` of a plain tensor as that of one of `type`, with as many elements; null where it has none of the known forms.
static Attribute reshapeStorage(Attribute storage, RankedTensorType type) {
  if (auto elements = dyn_cast_or_null<DenseElementsAttr>(storage))
    return elements.reshape(type);
  if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(storage))
    return DenseResourceElementsAttr::get(type, resource.getRawHandle());
  return dyn_cast_or_null<ExternalAttr>(storage);
}

Value ExpertWeights::read(OnnxBuilder &onnx, const Twine &name, RankedTensorType type, Attribute storage) {
  ParamOp &param = params[{type, storage}];
  if (!param) {
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    param = ParamOp::create(b, onnx.loc, (name + ".experts").str(), type, storage);
    symbols.insert(param);
    if (auto original = symbols.lookup<ParamOp>(name.str()))
      copies.try_emplace(original, param);
  }
  return GetParamOp::create(onnx.b, onnx.loc, param.getTensorType(), param.getSymName());
}

Value ExpertWeights::stack(OnnxBuilder &onnx, Value weights) {
  if (!weights)
    return {};
  RankedTensorType type = getRankedType(weights);
  int64_t rows = type.getDimSize(0) * type.getDimSize(1), columns = type.getDimSize(2);
  auto stacked = RankedTensorType::get({rows, columns}, type.getElementType());
  if (auto get = weights.getDefiningOp<GetParamOp>()) {
    auto param = symbols.lookup<ParamOp>(get.getName());
    if (Attribute storage = param && !type.getEncoding() ? reshapeStorage(param.getStorage(), stacked) : Attribute())
      return read(onnx, param.getSymName(), stacked, storage);
  }
  if (Operation *constant = getDefiningOp(weights, "Constant"))
    if (Attribute storage = reshapeStorage(constant->getAttr("value"), stacked))
      return read(onnx, "constant", stacked, storage);
  return onnx.reshape(weights, {rows, columns}, {rows, columns});
}

Value ExpertWeights::stack(OnnxBuilder &onnx, Value codes, Value scales, Value zeros, int64_t bits, int64_t group,
                           Type elements) {
  RankedTensorType type = getRankedType(codes);
  int64_t columns = type.getDimSize(2) * 8 / bits;
  auto weight =
      quantized.makeRows(codes, scales, zeros, bits, group, type.getDimSize(0) * type.getDimSize(1), columns, elements);
  return weight ? read(onnx, weight->name, weight->type, weight->storage) : Value();
}

} // namespace hone::raising
