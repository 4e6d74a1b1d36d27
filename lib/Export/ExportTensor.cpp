// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types and tensors in ONNX's terms; the inverse of lib/Import/ImportTensor.cpp.

#include "ExportTensor.h"

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Dialect/Onnx/PackedElements.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using ::onnx::TensorProto;

namespace hone {

std::optional<int32_t> exportElementType(Type element) {
  for (int32_t number = TensorProto::DataType_MIN; number <= TensorProto::DataType_MAX; ++number)
    if (TensorProto::DataType_IsValid(number) && onnxir::getElementType(number, element.getContext()) == element)
      return number;
  return std::nullopt;
}

static LogicalResult exportTensorLike(TensorType type, ArrayAttr dims, ::onnx::TypeProto::Tensor &proto, Location loc) {
  if (type.getElementType() == onnxir::getUnknownType(type.getContext()))
    return success();
  std::optional<int32_t> element = exportElementType(type.getElementType());
  if (!element)
    return emitError(loc) << "unsupported element type " << type.getElementType() << "; ONNX has none like it";
  proto.set_elem_type(*element);
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked)
    return success();
  auto *shape = proto.mutable_shape();
  bool named = dims && static_cast<int64_t>(dims.size()) == ranked.getRank();
  for (int64_t dim = 0; dim < ranked.getRank(); ++dim) {
    auto *size = shape->add_dim();
    StringRef name = named ? cast<StringAttr>(dims[dim]).getValue() : StringRef();
    // The text of a number is a fixed size that the file gave as a name.
    bool isName = !name.empty() && (ranked.isDynamicDim(dim) || name == std::to_string(ranked.getDimSize(dim)));
    if (isName)
      size->set_dim_param(name.str());
    else if (!ranked.isDynamicDim(dim))
      size->set_dim_value(ranked.getDimSize(dim));
  }
  return success();
}

LogicalResult exportType(Type type, ArrayAttr dims, ::onnx::TypeProto &proto, Location loc) {
  if (auto tensor = dyn_cast<TensorType>(type))
    return exportTensorLike(tensor, dims, *proto.mutable_tensor_type(), loc);
  if (type == onnxir::getUnknownType(type.getContext()))
    return success();
  if (auto dynamic = dyn_cast<DynamicType>(type); dynamic && dynamic.getParams().size() == 1) {
    Type element = cast<TypeAttr>(dynamic.getParams()[0]).getValue();
    StringRef kind = dynamic.getTypeDef()->getName();
    if (kind == "sequence")
      return exportType(element, {}, *proto.mutable_sequence_type()->mutable_elem_type(), loc);
    if (kind == "optional")
      return exportType(element, {}, *proto.mutable_optional_type()->mutable_elem_type(), loc);
  }
  return emitError(loc) << "unsupported type " << type << "; ONNX has none like it";
}

static bool agrees(const ::onnx::TypeProto::Tensor &said, const ::onnx::TypeProto::Tensor &known) {
  if (known.has_elem_type() && said.has_elem_type() && said.elem_type() != known.elem_type())
    return false;
  if (!said.has_shape() || !known.has_shape())
    return true;
  if (said.shape().dim_size() != known.shape().dim_size())
    return false;
  for (int i = 0; i < said.shape().dim_size(); ++i) {
    const auto &a = said.shape().dim(i), &b = known.shape().dim(i);
    int64_t number = 0; // some files give fixed sizes as names
    bool isFixed = a.has_dim_param() && !StringRef(a.dim_param()).getAsInteger(10, number);
    if ((isFixed && b.has_dim_value() && number != b.dim_value()) ||
        (a.has_dim_value() && b.has_dim_value() && a.dim_value() != b.dim_value()) ||
        (a.has_dim_param() && b.has_dim_param() && a.dim_param() != b.dim_param()))
      return false;
  }
  return true;
}

bool agrees(const ::onnx::TypeProto &said, const ::onnx::TypeProto &known) {
  if (said.value_case() != known.value_case() || !said.has_tensor_type())
    return known.value_case() == ::onnx::TypeProto::VALUE_NOT_SET || said.value_case() == known.value_case();
  return agrees(said.tensor_type(), known.tensor_type());
}

int64_t getExportedBytes(RankedTensorType type) {
  if (std::optional<unsigned> bits = onnxir::getPackedBits(type.getElementType()))
    return onnxir::getPackedBytes(type.getNumElements(), *bits);
  return getDenseBytes(type).value_or(0);
}

LogicalResult exportTensorType(RankedTensorType type, TensorProto &proto, Location loc) {
  std::optional<int32_t> element = exportElementType(type.getElementType());
  if (!element)
    return emitError(loc) << "unsupported element type " << type.getElementType() << "; ONNX has none like it";
  proto.set_data_type(*element);
  for (int64_t size : type.getShape())
    proto.add_dims(size);
  return success();
}

LogicalResult exportTensor(ElementsAttr value, TensorProto &proto, Location loc) {
  auto type = cast<RankedTensorType>(value.getShapedType());
  if (failed(exportTensorType(type, proto, loc)))
    return failure();
  if (auto strings = dyn_cast<DenseStringElementsAttr>(value)) {
    for (StringRef string : strings.getRawStringData())
      proto.add_string_data(string.str());
    return success();
  }
  std::string bytes;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return emitError(loc) << "expected the bytes of resource '" << resource.getRawHandle().getKey()
                            << "', but the file has none";
    bytes.assign(blob->getData().data(), blob->getData().size());
  } else if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    bytes = getElements(dense);
  } else {
    return emitError(loc) << "unsupported kind of constant " << value;
  }
  std::optional<unsigned> bits = onnxir::getPackedBits(type.getElementType());
  proto.set_raw_data(bits ? onnxir::packElements(bytes, *bits) : std::move(bytes));
  return success();
}

} // namespace hone
