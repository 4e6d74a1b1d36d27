//===- HoneEncodings.cpp - how and where weights are stored -----------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Storage of plain tensors, #hone.stored and #hone.external.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"

#include "PlainElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
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

Value StoredAttr::buildUnpack(OpBuilder &builder, Location loc, RankedTensorType type, ValueRange planes) const {
  MLIRContext *context = builder.getContext();
  unsigned rank = type.getRank();
  AffineMap identity = AffineMap::getMultiDimIdentityMap(rank, context);
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq(rank));
  if (getTransposed())
    std::swap(order[rank - 1], order[rank - 2]);
  Value plane = planes[0];
  SmallVector<OpFoldResult> sizes;
  for (unsigned i = 0; i < rank; ++i)
    sizes.push_back(linalg::createFoldedDimOp(builder, loc, plane, order[i]));
  Value init = tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(builder, loc, init.getType(), plane, init,
                                           ArrayRef<AffineMap>{AffineMap::getPermutationMap(order, context), identity},
                                           iterators, [&](OpBuilder &b, Location l, ValueRange args) {
                                             Value element = args[0];
                                             if (element.getType() != type.getElementType())
                                               element = arith::ExtFOp::create(b, l, type.getElementType(), element);
                                             linalg::YieldOp::create(b, l, element);
                                           });
  return generic.getResult(0);
}

std::string StoredAttr::getKernelSuffix() const {
  std::string suffix;
  llvm::raw_string_ostream(suffix) << getType() << (getTransposed() ? "_t" : "");
  return suffix;
}
