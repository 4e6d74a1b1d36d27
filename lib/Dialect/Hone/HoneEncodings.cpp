//===- HoneEncodings.cpp - how and where weights are stored -----------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Storage of plain tensors, #hone.stored, #hone.quantized_kv and #hone.external.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hone/PlainElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace hone;

//===- Storage of any tensor type ---------------------------------------------------------------------------------===//

bool hone::isWeightEncoding(Attribute encoding) { return !encoding || isa<EncodingInterface>(encoding); }

RankedTensorType hone::getPlainType(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

SmallVector<EncodingPlane> hone::getPlanes(RankedTensorType type) {
  if (auto encoding = dyn_cast_or_null<EncodingInterface>(type.getEncoding()))
    return encoding.getPlanes(type.getShape(), type.getElementType());
  return {{"values", type}};
}

SmallVector<PlaneView> hone::viewWhole(ArrayRef<EncodingPlane> planes) {
  SmallVector<PlaneView> views;
  for (auto [i, plane] : llvm::enumerate(planes))
    views.push_back({plane.type, i});
  return views;
}

SmallVector<PlaneView> hone::getViews(RankedTensorType type) {
  if (auto encoding = dyn_cast_or_null<EncodingInterface>(type.getEncoding()))
    return encoding.getViews(type.getShape(), type.getElementType());
  return viewWhole(getPlanes(type));
}

//===- #hone.quantized_kv -----------------------------------------------------------------------------------------===//

LogicalResult QuantizedKvAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t bits) {
  if (bits != 4 && bits != 8) // quantized_kv C1
    return emitError() << "unsupported number of bits " << bits << " of quantized KV; supported: 4, 8";
  return success();
}

LogicalResult QuantizedKvAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                              llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (!elementType) // what the parser could not read
    return failure();
  if (shape.empty() || !elementType.isF32()) // quantized_kv C2
    return emitError() << "expected a tensor of quantized KV to have at least 1 dimension and elements of f32, but got "
                       << shape.size() << " and " << elementType;
  return success();
}

//===- #hone.external ---------------------------------------------------------------------------------------------===//

LogicalResult ExternalAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef file, int64_t offset,
                                   int64_t bytes) {
  if (file.empty()) // external C1
    return emitError() << "expected the name of the file not to be empty";
  if (offset < 0) // external C2
    return emitError() << "expected the offset to be 0 or more, but got " << offset;
  if (bytes < 0) // external C3
    return emitError() << "expected the number of bytes to be 0 or more, but got " << bytes;
  return success();
}

//===- #hone.converted --------------------------------------------------------------------------------------------===//

LogicalResult ConvertedAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, RankedTensorType,
                                    Attribute storage) {
  if (!isa<ElementsAttr, ExternalAttr, StackedAttr, DictionaryAttr>(storage)) // converted C1
    return emitError()
           << "expected the storage that is converted to be dense elements, a resource, #hone.external, #hone.stacked "
              "or a dictionary of planes, but got "
           << storage;
  return success();
}

//===- #hone.stacked ----------------------------------------------------------------------------------------------===//

RankedTensorType StackedAttr::getStackedType() {
  SmallVector<int64_t> shape(getType().getShape());
  shape.front() *= static_cast<int64_t>(getParts().size());
  return RankedTensorType::get(shape, getType().getElementType());
}

LogicalResult StackedAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, RankedTensorType type,
                                  ArrayAttr parts) {
  bool isPlain = !type.getEncoding() || isa<StoredAttr>(type.getEncoding());
  std::optional<int64_t> bytes = isPlain && type.getRank() > 0 ? getStorageBytes(type) : std::nullopt;
  if (!bytes) // stacked C1
    return emitError() << "expected what is stacked to be plain elements of a static shape, but got " << type;
  RankedTensorType plane = getPlanes(type)[0].type;
  auto fits = [&](Attribute part) {
    if (auto external = dyn_cast<ExternalAttr>(part))
      return external.getBytes() == *bytes;
    auto elements = dyn_cast<ElementsAttr>(part);
    return elements && elements.getShapedType() == plane;
  };
  if (parts.empty() || !llvm::all_of(parts, fits)) // stacked C2
    return emitError() << "expected each of the parts to be the " << *bytes << " bytes of " << type << ", but got "
                       << parts;
  return success();
}

//===- #hone.stored -----------------------------------------------------------------------------------------------===//

Attribute StoredAttr::parse(AsmParser &parser, Type) {
  FloatType type;
  if (parser.parseLess() || parser.parseType(type))
    return {};
  bool transposed = succeeded(parser.parseOptionalComma());
  if ((transposed && parser.parseKeyword("transposed")) || parser.parseGreater())
    return {};
  return parser.getChecked<StoredAttr>(type, transposed);
}

void StoredAttr::print(AsmPrinter &printer) const {
  printer << "<" << getType() << (getTransposed() ? ", transposed>" : ">");
}

LogicalResult StoredAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, FloatType type, bool) {
  if (!isa<Float32Type, Float16Type, BFloat16Type>(type)) // stored C1
    return emitError() << "unsupported type of stored elements " << type << "; supported: f32, f16, bf16";
  return success();
}

LogicalResult StoredAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                         llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (!elementType) // what the parser could not read
    return failure();
  if (elementType != getType() && !elementType.isF32()) // stored C2
    return emitError() << "expected the elements of a tensor stored as " << getType() << " to be f32"
                       << (getType().isF32() ? "" : " or the same") << ", but got " << elementType;
  if (getTransposed() && shape.size() < 2) // stored C3
    return emitError() << "expected a tensor that is stored transposed to have at least 2 dimensions, but got "
                       << shape.size();
  return success();
}

SmallVector<EncodingPlane> StoredAttr::getPlanes(ArrayRef<int64_t> shape, Type) const {
  SmallVector<int64_t> stored(shape);
  if (getTransposed())
    std::swap(stored[stored.size() - 1], stored[stored.size() - 2]);
  return {{"values", RankedTensorType::get(stored, getType())}};
}

/// Calls `move(from, to)` with the index in a dense array of shape `shape`, and in one with the last two dimensions swapped
/// if `transposed`, of each element.
static void forEachElement(ArrayRef<int64_t> shape, bool transposed, llvm::function_ref<void(int64_t, int64_t)> move) {
  int64_t columns = transposed ? shape.back() : 1;
  int64_t rows = transposed ? shape[shape.size() - 2] : 1;
  int64_t matrices = llvm::product_of(transposed ? shape.drop_back(2) : shape);
  for (int64_t m = 0; m < matrices; ++m)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        move((m * rows + r) * columns + c, (m * columns + c) * rows + r);
}

LogicalResult StoredAttr::pack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<char> dense,
                               ArrayRef<MutableArrayRef<char>> planes, llvm::function_ref<InFlightDiagnostic()>) const {
  PlainElements from(elementType), to(getType());
  forEachElement(shape, getTransposed(),
                 [&](int64_t logical, int64_t stored) { to.store(planes[0], stored, from.load(dense, logical)); });
  return success();
}

void StoredAttr::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                        MutableArrayRef<char> dense) const {
  PlainElements from(getType()), to(elementType);
  forEachElement(shape, getTransposed(),
                 [&](int64_t logical, int64_t stored) { to.store(dense, logical, from.load(planes[0], stored)); });
}

Value StoredAttr::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                               ValueRange indices) const {
  SmallVector<Value> place(indices);
  if (getTransposed())
    std::swap(place[place.size() - 1], place[place.size() - 2]);
  Value element = tensor::ExtractOp::create(builder, loc, planes[0], place);
  return element.getType() == elementType ? element : arith::ExtFOp::create(builder, loc, elementType, element);
}

std::string StoredAttr::getKernelSuffix() const {
  std::string suffix;
  llvm::raw_string_ostream(suffix) << getType() << (getTransposed() ? "_t" : "");
  return suffix;
}
