// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types and tensors in ONNX's terms; the inverse of lib/Import/ImportTensor.cpp.

#include "ExportTensor.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"

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
    if (!ranked.isDynamicDim(dim))
      size->set_dim_value(ranked.getDimSize(dim));
    else if (!name.empty())
      size->set_dim_param(name.str());
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

LogicalResult exportTensorType(RankedTensorType type, TensorProto &proto, Location loc) {
  std::optional<int32_t> element = exportElementType(type.getElementType());
  if (!element)
    return emitError(loc) << "unsupported element type " << type.getElementType() << "; ONNX has none like it";
  proto.set_data_type(*element);
  for (int64_t size : type.getShape())
    proto.add_dims(size);
  return success();
}

/// One byte an element to `bits` bits an element, low bits first.
static std::string pack(StringRef bytes, unsigned bits) {
  unsigned perByte = 8 / bits, mask = (1u << bits) - 1;
  std::string packed(llvm::divideCeil(bytes.size(), perByte), '\0');
  for (size_t i = 0; i < bytes.size(); ++i)
    packed[i / perByte] |= static_cast<char>((static_cast<unsigned char>(bytes[i]) & mask) << (bits * (i % perByte)));
  return packed;
}

/// One byte an element below eight bits, else the elements as they are.
static std::string getBytes(DenseElementsAttr value) {
  Type element = value.getElementType();
  bool small = !isa<ComplexType>(element) && element.getIntOrFloatBitWidth() < 8;
  std::string bytes;
  if (small) {
    for (APInt bits : isa<FloatType>(element)
                          ? llvm::to_vector(llvm::map_range(value.getValues<APFloat>(),
                                                            [](const APFloat &v) { return v.bitcastToAPInt(); }))
                          : llvm::to_vector(value.getValues<APInt>()))
      bytes.push_back(static_cast<char>(bits.getZExtValue()));
    return bytes;
  }
  ArrayRef<char> raw = value.getRawData();
  int64_t copies = value.isSplat() ? value.getNumElements() : 1;
  for (int64_t i = 0; i < copies; ++i)
    bytes.append(raw.data(), raw.size());
  return bytes;
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
    bytes = getBytes(dense);
  } else {
    return emitError(loc) << "unsupported kind of constant " << value;
  }
  Type element = type.getElementType();
  unsigned bits = isa<ComplexType>(element) ? 64 : element.getIntOrFloatBitWidth();
  proto.set_raw_data(bits == 2 || bits == 4 ? pack(bytes, bits) : std::move(bytes));
  return success();
}

} // namespace hone
