// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hrt.panels and blocks of keys and values: the layouts themselves are in hone/cpu/packing,
// for the runtime that reads them as well.

#include "Panels.h"

#include "hone/Dialect/Hone/HoneStorage.h"

using namespace mlir;

namespace hone::hrt {

//===----------------------------------------------------------------------===//
// What is packed
//===----------------------------------------------------------------------===//

std::unique_ptr<PanelLayout> getLayout(Attribute elements) {
#define HONE_PANELS(make, what)                                                                                        \
  if (std::unique_ptr<PanelLayout> layout = make(elements))                                                            \
    return layout;
#include "PanelLayouts.def"
#undef HONE_PANELS
  return nullptr;
}

static constexpr llvm::StringLiteral kPackable =
#define HONE_PANELS(make, what) what ", "
#include "PanelLayouts.def"
#undef HONE_PANELS
    "#hone.dense_sparse of #hone.affine and of #hone.codebook";

static bool isPackable(Attribute elements) {
  auto sparse = dyn_cast<DenseSparseAttr>(elements);
  return sparse ? isPackable(sparse.getBase()) : getLayout(elements) != nullptr;
}

bool PanelsAttr::canPack(Attribute encoding) { return !encoding || isa<StoredAttr>(encoding) || isPackable(encoding); }

LogicalResult PanelsAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Attribute elements) {
  if (!isPackable(elements)) // panels C1
    return emitError() << "unsupported packed elements " << elements << "; supported: " << kPackable;
  return success();
}

LogicalResult PanelsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                         llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (!elementType) // what the parser could not read
    return failure();
  if (getSparse() && failed(getSparse().verifyEncoding(shape, elementType, emitError)))
    return failure();
  auto type = dyn_cast<TypeAttr>(getNm() ? getNm().getOf() : getElements());
  bool isSame = type && elementType == type.getValue();
  if (shape.size() != 2 || (!isSame && !elementType.isF32())) // panels C2
    return emitError() << "expected a tensor in panels of " << getElements()
                       << " to have 2 dimensions and elements of f32"
                       << (!type || type.getValue().isF32() ? "" : " or the same") << ", but got " << shape.size()
                       << " and " << elementType;
  return success();
}

static LogicalResult verifyBlocks(StringRef what, int64_t bits, ArrayRef<int64_t> shape, Type elementType,
                                  llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (!elementType) // what the parser could not read
    return failure();
  if (bits != 0 && !elementType.isF32()) // key_blocks C2, value_blocks C2
    return emitError() << "expected " << what << " in blocks of " << bits << " bits to have elements of f32, but got "
                       << elementType;
  if (shape.size() != 4 || !KeyBlocksAttr::canBlock(elementType)) // key_blocks C1, value_blocks C1
    return emitError() << "expected " << what
                       << " in blocks to have 4 dimensions and elements of f32, f16 or bf16, but got " << shape.size()
                       << " and " << elementType;
  return success();
}

static LogicalResult verifyBits(int64_t bits, llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (bits == 0 || bits == 4 || bits == 8) // key_blocks C2, value_blocks C2
    return success();
  return emitError() << "unsupported number of bits " << bits << " of numbers in blocks; supported: 0, 4, 8";
}

LogicalResult KeyBlocksAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t bits) {
  return verifyBits(bits, emitError);
}

LogicalResult ValueBlocksAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t bits) {
  return verifyBits(bits, emitError);
}

StringRef KeyBlocksAttr::getLayoutName() const { return getMnemonic(); }

StringRef ValueBlocksAttr::getLayoutName() const { return getMnemonic(); }

int64_t KeyBlocksAttr::getIntegerBits() const { return getBits(); }

int64_t ValueBlocksAttr::getIntegerBits() const { return getBits(); }

LogicalResult KeyBlocksAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                            llvm::function_ref<InFlightDiagnostic()> emitError) const {
  return verifyBlocks("keys", getBits(), shape, elementType, emitError);
}

LogicalResult ValueBlocksAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                              llvm::function_ref<InFlightDiagnostic()> emitError) const {
  return verifyBlocks("values", getBits(), shape, elementType, emitError);
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

bool PanelsAttr::repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
                        ArrayRef<MutableArrayRef<char>> planes) const {
  if (DenseSparseAttr sparse = getSparse()) {
    constexpr int64_t count = DenseSparseAttr::kSparsePlanes;
    if (source != sparse)
      return false;
    for (auto [bytes, plane] : llvm::zip_equal(from.take_front(count), planes.take_front(count)))
      llvm::copy(bytes, plane.begin());
    return getBase(*this).repack(shape, sparse.getBase(), from.drop_front(count), planes.drop_front(count));
  }
  std::unique_ptr<PanelLayout> layout = getLayout(getElements());
  SmallVector<EncodingPlane> arrays = layout->getArrays(shape);
  if (arrays.size() == 1)
    return layout->repack(shape, source, from, planes);
  PanelBlocks blocks(arrays);
  if (!layout->repack(shape, source, from, blocks.allocate()))
    return false;
  blocks.join(planes[0]);
  return true;
}

LogicalResult PanelsAttr::pack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<char> dense,
                               ArrayRef<MutableArrayRef<char>> planes,
                               llvm::function_ref<InFlightDiagnostic()> emitError) const {
  EncodingInterface source = dyn_cast<EncodingInterface>(getElements());
  if (!source) {
    auto type = cast<FloatType>(cast<TypeAttr>(getElements()).getValue());
    source = StoredAttr::get(type);
    if (elementType == type) {
      repack(shape, source, dense, planes);
      return success();
    }
  }
  SmallVector<SmallVector<char, 0>> rounded;
  SmallVector<MutableArrayRef<char>> buffers;
  for (const EncodingPlane &plane : source.getPlanes(shape, elementType))
    rounded.emplace_back().resize_for_overwrite(getDenseBytes(plane.type).value_or(0));
  for (SmallVector<char, 0> &plane : rounded)
    buffers.push_back(plane);
  if (failed(source.pack(shape, elementType, dense, buffers, emitError)))
    return failure();
  repack(shape, source, SmallVector<ArrayRef<char>>(buffers.begin(), buffers.end()), planes);
  return success();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

void PanelsAttr::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                        MutableArrayRef<char> dense) const {
  if (DenseSparseAttr sparse = getSparse()) {
    getBase(*this).unpack(shape, elementType, planes.drop_front(DenseSparseAttr::kSparsePlanes), dense);
    return sparse.placeOutliers(shape, elementType, planes, dense);
  }
  std::unique_ptr<PanelLayout> layout = getLayout(getElements());
  SmallVector<EncodingPlane> types = layout->getArrays(shape);
  if (types.size() == 1)
    return layout->unpack(shape, elementType, planes, dense);
  PanelBlocks blocks(types);
  layout->unpack(shape, elementType, blocks.divide(planes[0]), dense);
}

Value PanelsAttr::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                               ValueRange indices) const {
  if (DenseSparseAttr sparse = getSparse()) {
    Value element = getBase(*this).buildElement(builder, loc, builder.getF32Type(),
                                                planes.drop_front(DenseSparseAttr::kSparsePlanes), indices);
    return sparse.buildChoice(builder, loc, elementType, planes, indices, element);
  }
  return getLayout(getElements())->buildElement(builder, loc, elementType, planes, indices);
}

ActivationRounding PanelsAttr::getActivationRounding() const {
  AffineAttr affine = getAffine();
  return affine ? affine.getActivationRounding() : ActivationRounding();
}

std::string PanelsAttr::getKernelSuffix() const {
  if (getSparse())
    return "outliers." + getBase(*this).getKernelSuffix();
  return getLayout(getElements())->getKernelSuffix();
}

} // namespace hone::hrt
