// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hone.codebook: indices into the centroids of each row.

#include "CodePlane.h"

#include "hone/Compress/Codebook.h"
#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hone/PlainElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace hone;

LogicalResult CodebookAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t bits, FloatType values) {
  if (!canHave(bits)) // codebook C1
    return emitError() << "unsupported number of bits " << bits << " of a codebook; supported: 2, 3, 4";
  if (!isa<Float32Type, Float16Type, BFloat16Type>(values)) // codebook C2
    return emitError() << "unsupported type of centroids " << values << " of a codebook; supported: f32, f16, bf16";
  return success();
}

LogicalResult CodebookAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                           llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (!elementType) // what the parser could not read
    return failure();
  if (shape.size() != 2 || !isa<Float32Type, Float16Type, BFloat16Type>(elementType)) // codebook C3
    return emitError()
           << "expected a tensor of indices into codebooks to have 2 dimensions and elements of f32, f16 or "
              "bf16, but got "
           << shape.size() << " and " << elementType;
  return success();
}

SmallVector<EncodingPlane> CodebookAttr::getPlanes(ArrayRef<int64_t> shape, Type) const {
  SmallVector<int64_t> indices{shape[0], getCodeBytes(shape[1], getBits())}, codebook{shape[0], getEntries()};
  return {{"indices", RankedTensorType::get(indices, IntegerType::get(getContext(), 8))},
          {"codebook", RankedTensorType::get(codebook, getValues())}};
}

static CodePlane getIndexPlane(CodebookAttr encoding, int64_t rows, int64_t bytes) {
  return {encoding.getBits(), /*isSigned=*/false, /*isTransposed=*/false, rows, bytes};
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

compress::CodebookFormat CodebookAttr::getFormat() const {
  using CentroidType = compress::CodebookFormat::CentroidType;
  return {getBits(), getValues().isF32()   ? CentroidType::F32
                     : getValues().isF16() ? CentroidType::F16
                                           : CentroidType::Bf16};
}

void CodebookAttr::packIndices(ArrayRef<int64_t> shape, ArrayRef<uint8_t> indices, ArrayRef<float> codebook,
                               ArrayRef<MutableArrayRef<char>> planes) const {
  CodePlane to = getIndexPlane(*this, shape[0], planes[0].size());
  llvm::fill(planes[0], 0);
  for (int64_t row = 0; row < shape[0]; ++row)
    for (int64_t column = 0; column < shape[1]; ++column)
      to.store(planes[0], row, column, indices[row * shape[1] + column]);
  PlainElements centroids(getValues());
  for (auto [i, centroid] : llvm::enumerate(codebook))
    centroids.store(planes[1], i, centroid);
}

void CodebookAttr::loadIndices(ArrayRef<char> plane, int64_t rows, int64_t row,
                               MutableArrayRef<uint8_t> indices) const {
  CodePlane from = getIndexPlane(*this, rows, plane.size());
  for (auto [column, index] : llvm::enumerate(indices))
    index = static_cast<uint8_t>(from.load(plane, row, column));
}

LogicalResult CodebookAttr::pack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<char> dense,
                                 ArrayRef<MutableArrayRef<char>> planes,
                                 llvm::function_ref<InFlightDiagnostic()> emitError) const {
  PlainElements from(elementType);
  std::vector<float> elements(shape[0] * shape[1]);
  for (auto [i, element] : llvm::enumerate(elements))
    element = from.load(dense, i);
  auto rounded = compress::roundToCodebook({elements, shape[0], shape[1]}, getFormat());
  if (!rounded.ok())
    return emitError() << std::string(rounded.status().message());
  packIndices(shape, rounded->indices, rounded->codebook, planes);
  return success();
}

void CodebookAttr::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                          MutableArrayRef<char> dense) const {
  PlainElements centroids(getValues()), elements(elementType);
  SmallVector<uint8_t> indices(shape[1]);
  for (int64_t row = 0; row < shape[0]; ++row) {
    loadIndices(planes[0], shape[0], row, indices);
    for (auto [column, index] : llvm::enumerate(indices))
      elements.store(dense, row * shape[1] + column, centroids.load(planes[1], row * getEntries() + index));
  }
}

//===----------------------------------------------------------------------===//
// IR
//===----------------------------------------------------------------------===//

Value CodebookAttr::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                                 ValueRange indices) const {
  Value index = buildCodeBits(builder, loc, getBits(), /*isSigned=*/false, planes[0], indices[0], indices[1]);
  index = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), index);
  Value element = tensor::ExtractOp::create(builder, loc, planes[1], ValueRange{indices[0], index});
  if (getValues() == elementType)
    return element;
  if (!getValues().isF32())
    element = arith::ExtFOp::create(builder, loc, builder.getF32Type(), element);
  return elementType.isF32() ? element : arith::TruncFOp::create(builder, loc, elementType, element);
}

std::string CodebookAttr::getKernelSuffix() const { return "codebook" + std::to_string(getBits()); }
