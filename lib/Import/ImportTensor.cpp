// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types and tensors of ONNX in MLIR's terms. Every byte count is checked against the shape before it is believed.

#include "ImportTensor.h"

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Dialect/Onnx/PackedElements.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir;
using ::onnx::TensorProto;

namespace hone {

static Type importTensorLike(const ::onnx::TypeProto::Tensor &type, MLIRContext *context) {
  Type element = onnxir::getElementType(type.elem_type(), context);
  if (!element)
    element = onnxir::getUnknownType(context);
  if (!type.has_shape())
    return UnrankedTensorType::get(element);
  SmallVector<int64_t> shape;
  for (const auto &dim : type.shape().dim())
    shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : ShapedType::kDynamic);
  return RankedTensorType::get(shape, element);
}

Type importType(const ::onnx::TypeProto &type, MLIRContext *context) {
  using ::onnx::TypeProto;
  switch (type.value_case()) {
  case TypeProto::kTensorType:
    return importTensorLike(type.tensor_type(), context);
  case TypeProto::kSequenceType:
    return onnxir::getContainerType(context, "sequence", importType(type.sequence_type().elem_type(), context));
  case TypeProto::kOptionalType:
    return onnxir::getContainerType(context, "optional", importType(type.optional_type().elem_type(), context));
  case TypeProto::kMapType:
    return onnxir::getContainerType(context, "map", importType(type.map_type().value_type(), context));
  default:
    return onnxir::getUnknownType(context);
  }
}

Type importInputType(const ::onnx::TypeProto &type, MLIRContext *context) {
  auto tensor = dyn_cast<RankedTensorType>(importType(type, context));
  if (!tensor || !type.has_tensor_type())
    return importType(type, context);
  SmallVector<int64_t> shape(tensor.getShape());
  for (auto [size, dim] : llvm::zip_equal(shape, type.tensor_type().shape().dim())) {
    int64_t number = 0;
    if (dim.has_dim_param() && !StringRef(dim.dim_param()).getAsInteger(10, number) && number >= 0)
      size = number;
  }
  return RankedTensorType::get(shape, tensor.getElementType());
}

/// Names that exporters give dimensions of which they know nothing: two of them need not be equal.
static bool isPlaceholder(StringRef name) { return name == "?" || name == "*" || name == "-1" || name == "None"; }

ArrayAttr importDimensionNames(const ::onnx::TypeProto &type, MLIRContext *context) {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape())
    return {};
  Builder b(context);
  SmallVector<Attribute> names;
  for (const auto &dim : type.tensor_type().shape().dim())
    names.push_back(b.getStringAttr(isPlaceholder(dim.dim_param()) ? std::string() : dim.dim_param()));
  return b.getArrayAttr(names);
}

RankedTensorType importTensorType(const TensorProto &tensor, Location loc) {
  Type element = onnxir::getElementType(tensor.data_type(), loc.getContext());
  if (!element) {
    emitError(loc) << "unsupported data type " << tensor.data_type() << " of tensor '" << tensor.name() << "'";
    return {};
  }
  int64_t count = 1;
  for (int64_t dim : tensor.dims())
    if (dim < 0 || llvm::MulOverflow(count, dim, count)) {
      emitError(loc) << "expected the sizes of tensor '" << tensor.name()
                     << "' to be non-negative and their product to fit 63 bits, but got " << dim;
      return {};
    }
  return RankedTensorType::get(SmallVector<int64_t>(tensor.dims().begin(), tensor.dims().end()), element);
}

TensorProto describeTensor(const TensorProto &tensor) {
  TensorProto description;
  if (tensor.has_name())
    description.set_name(tensor.name());
  if (tensor.has_doc_string())
    description.set_doc_string(tensor.doc_string());
  *description.mutable_metadata_props() = tensor.metadata_props();
  return description;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

template <typename Field>
static void appendAs(std::string &bytes, const Field &field, int64_t width) {
  for (auto value : field)
    bytes.append(reinterpret_cast<const char *>(&value), width); // little-endian hosts only, as the whole project
}

/// The bytes that the typed fields of `tensor` say, one element after the other.
static std::string gatherTypedFields(const TensorProto &tensor, int64_t elementBytes) {
  std::string bytes;
  appendAs(bytes, tensor.float_data(), 4);
  appendAs(bytes, tensor.double_data(), 8);
  appendAs(bytes, tensor.int64_data(), 8);
  appendAs(bytes, tensor.uint64_data(), std::min<int64_t>(elementBytes, 8));
  appendAs(bytes, tensor.int32_data(), std::min<int64_t>(elementBytes, 4));
  return bytes;
}

std::string gatherBytes(const TensorProto &tensor, int64_t elementBytes) {
  return tensor.has_raw_data() ? tensor.raw_data() : gatherTypedFields(tensor, elementBytes);
}

static ElementsAttr importStrings(const TensorProto &tensor, RankedTensorType type, Location loc) {
  if (tensor.string_data_size() != type.getNumElements()) {
    emitError(loc) << "expected tensor '" << tensor.name() << "' to hold " << type.getNumElements()
                   << " strings, but got " << tensor.string_data_size();
    return {};
  }
  SmallVector<StringRef> strings;
  for (const std::string &string : tensor.string_data())
    strings.push_back(string);
  return DenseStringElementsAttr::get(type, strings);
}

static ElementsAttr makeDense(RankedTensorType type, ArrayRef<char> bytes) {
  if (bytes.empty())
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> bits;
    for (char byte : bytes)
      bits.push_back(byte != 0);
    return DenseElementsAttr::get(type, bits);
  }
  Type element = type.getElementType();
  bool subByte = !isa<ComplexType>(element) && element.getIntOrFloatBitWidth() < 8;
  if (subByte) {
    SmallVector<Attribute> values;
    for (char byte : bytes) {
      llvm::APInt bits(element.getIntOrFloatBitWidth(), static_cast<uint8_t>(byte), false, /*implicitTrunc=*/true);
      if (auto floating = dyn_cast<FloatType>(element))
        values.push_back(FloatAttr::get(floating, llvm::APFloat(floating.getFloatSemantics(), bits)));
      else
        values.push_back(IntegerAttr::get(element, bits));
    }
    return DenseElementsAttr::get(type, values);
  }
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}

static AsmResourceBlob makeBlob(std::string bytes) {
  auto owned = std::make_shared<std::string>(std::move(bytes));
  return AsmResourceBlob(
      ArrayRef<char>(owned->data(), owned->size()), /*dataAlignment=*/1, [owned](void *, size_t, size_t) {},
      /*dataIsMutable=*/false);
}

static StringRef getBlobName(const TensorProto &tensor) {
  return tensor.name().empty() ? StringRef("tensor") : StringRef(tensor.name());
}

ElementsAttr importPacked(RankedTensorType type, StringRef bytes, const TensorProto &tensor) {
  Type element = type.getElementType();
  bool isSigned = isa<IntegerType>(element) && !element.isUnsignedInteger();
  std::string unpacked =
      onnxir::unpackElements(bytes, type.getNumElements(), *onnxir::getPackedBits(element), isSigned);
  if (static_cast<int64_t>(unpacked.size()) <= kInlineBytes)
    return makeDense(type, ArrayRef<char>(unpacked.data(), unpacked.size()));
  return DenseResourceElementsAttr::get(type, getBlobName(tensor), makeBlob(std::move(unpacked)));
}

/// Whether the file stores the elements of `type` packed. Typed fields store those of 6 bits one by one, where raw bytes
/// pack them as they do those of 2 and 4 bits.
static bool isPacked(RankedTensorType type, bool raw) {
  std::optional<unsigned> bits = onnxir::getPackedBits(type.getElementType());
  return bits && (raw || 8 % *bits == 0);
}

std::optional<int64_t> getFileBytes(RankedTensorType type, bool raw) {
  std::optional<int64_t> dense = getDenseBytes(type);
  if (!dense || !isPacked(type, raw))
    return dense;
  return onnxir::getPackedBytes(type.getNumElements(), *onnxir::getPackedBits(type.getElementType()));
}

ElementsAttr importTensor(const TensorProto &tensor, const std::shared_ptr<const ::onnx::ModelProto> &owner,
                          Location loc) {
  RankedTensorType type = importTensorType(tensor, loc);
  if (!type)
    return {};
  if (tensor.data_type() == TensorProto::STRING)
    return importStrings(tensor, type, loc);
  bool raw = tensor.has_raw_data();
  std::optional<int64_t> expected = getFileBytes(type, raw);
  if (!expected) {
    emitError(loc) << "expected tensor '" << tensor.name() << "' to fit in memory, but got " << type.getNumElements()
                   << " elements";
    return {};
  }
  int64_t width = type.getNumElements() ? std::max<int64_t>(*getDenseBytes(type) / type.getNumElements(), 1) : 1;
  std::string typed = raw ? std::string() : gatherTypedFields(tensor, width);
  StringRef bytes = raw ? StringRef(tensor.raw_data()) : StringRef(typed);
  if (static_cast<int64_t>(bytes.size()) != *expected) {
    emitError(loc) << "expected tensor '" << tensor.name() << "' of type " << type << " to hold " << *expected
                   << " bytes, but got " << bytes.size();
    return {};
  }
  if (isPacked(type, raw))
    return importPacked(type, bytes, tensor);
  if (static_cast<int64_t>(bytes.size()) <= kInlineBytes)
    return makeDense(type, ArrayRef<char>(bytes.data(), bytes.size()));
  auto keepOwner = [owner](void *, size_t, size_t) {};
  AsmResourceBlob blob =
      raw ? AsmResourceBlob(ArrayRef<char>(bytes.data(), bytes.size()), /*dataAlignment=*/1, keepOwner,
                            /*dataIsMutable=*/false)
          : makeBlob(std::move(typed));
  return DenseResourceElementsAttr::get(type, getBlobName(tensor), std::move(blob));
}

} // namespace hone
