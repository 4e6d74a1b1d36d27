//===- HoneAffine.cpp - integers with a scale a group -----------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hone.affine: the layout of its planes, rounding to nearest, and the way back.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "CodePlane.h"

#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hone/PlainElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/Support/Parallel.h"

#include <atomic>

using namespace mlir;
using namespace hone;

/// Inputs that share a scale of the activations where the weight has no groups.
static constexpr int64_t kActivationGroup = 512;

LogicalResult AffineAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t bits, int64_t group,
                                 FloatType scales, bool, bool, bool transposed, int64_t activations, bool atLeast) {
  if (!llvm::is_contained(kWidths, bits)) // affine C1
    return emitError() << "unsupported number of bits " << bits << "; supported: " << ArrayRef(kWidths);
  if (group < 0 || group > (int64_t(1) << 32) || group * bits % 8 != 0) // affine C2
    return emitError() << "expected the codes of a group to fill whole bytes, but got a group of " << group;
  if (!isa<Float32Type, Float16Type>(scales)) // affine C3
    return emitError() << "unsupported type of scales " << scales << "; supported: f32, f16";
  if (transposed && bits != 8) // affine C4
    return emitError() << "expected codes that are stored transposed to have 8 bits, but got " << bits;
  if (activations != 0 && activations != 8) // affine C5
    return emitError() << "unsupported number of bits of activations " << activations << "; supported: 0, 8";
  if (activations != 0 && group > kActivationGroup) // affine C6
    return emitError() << "expected groups of at most " << kActivationGroup << " with rounded activations, but got "
                       << group;
  if (atLeast && activations == 0) // affine C8
    return emitError() << "expected a number of bits of activations with atLeast";
  return success();
}

LogicalResult AffineAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                         llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (!elementType) // what the parser could not read
    return failure();
  if (shape.size() != 2 || !isa<Float32Type, Float16Type, BFloat16Type>(elementType)) // affine C7
    return emitError() << "expected a tensor of quantized elements to have 2 dimensions and elements of f32, f16 or "
                          "bf16, but got "
                       << shape.size() << " and " << elementType;
  return success();
}

int64_t AffineAttr::getGroups(ArrayRef<int64_t> shape) const { return getFormat().groups(shape[1]); }

//===- Planes -----------------------------------------------------------------------------------------------------===//

SmallVector<EncodingPlane> AffineAttr::getPlanes(ArrayRef<int64_t> shape, Type) const {
  auto byte = IntegerType::get(getContext(), 8);
  int64_t groups = getGroups(shape);
  int64_t codes = getGroup() && !getTransposed() ? groups * getGroup() : shape[1];
  auto plane = [&](int64_t columns, Type type) {
    return getTransposed() ? RankedTensorType::get({columns, shape[0]}, type)
                           : RankedTensorType::get({shape[0], columns}, type);
  };
  SmallVector<EncodingPlane> planes{{"values", plane(getCodeBytes(codes, getBits()), byte)},
                                    {"scales", plane(groups, getScales())}};
  if (getHasZeros())
    planes.push_back({"zeros", plane(getCodeBytes(groups, getBits()), byte)});
  return planes;
}

/// A plane of `rows` rows of codes, of `bytes` bytes.
static CodePlane getCodePlane(AffineAttr encoding, int64_t rows, int64_t bytes) {
  return {encoding.getBits(), encoding.getIsSigned(), encoding.getTransposed(), rows, bytes};
}

namespace {
/// Scales and zero points of a matrix.
class GroupPlanes {
public:
  GroupPlanes(AffineAttr encoding, ArrayRef<int64_t> shape)
      : encoding(encoding), rows(shape[0]), groups(encoding.getGroups(shape)), scales(encoding.getScales()),
        zeros(getCodePlane(encoding, rows, rows * getCodeBytes(groups, encoding.getBits()))) {}

  float loadScale(ArrayRef<ArrayRef<char>> planes, int64_t row, int64_t group) const {
    return scales.load(planes[1], placeOf(row, group));
  }
  int64_t loadZero(ArrayRef<ArrayRef<char>> planes, int64_t row, int64_t group) const {
    return encoding.getHasZeros() ? zeros.load(planes[2], row, group) : encoding.getMiddle();
  }
  void storeScale(ArrayRef<MutableArrayRef<char>> planes, int64_t row, int64_t group, float scale) const {
    scales.store(planes[1], placeOf(row, group), scale);
  }
  void storeZero(ArrayRef<MutableArrayRef<char>> planes, int64_t row, int64_t group, int64_t zero) const {
    if (encoding.getHasZeros())
      zeros.store(planes[2], row, group, zero);
  }

private:
  int64_t placeOf(int64_t row, int64_t group) const {
    return encoding.getTransposed() ? group * rows + row : row * groups + group;
  }

  AffineAttr encoding;
  int64_t rows, groups;
  PlainElements scales;
  CodePlane zeros;
};
} // namespace

void AffineAttr::loadCodes(ArrayRef<char> plane, int64_t rows, int64_t row, MutableArrayRef<uint8_t> codes) const {
  CodePlane from = getCodePlane(*this, rows, plane.size());
  int64_t lowest = getIsSigned() ? -(int64_t(1) << (getBits() - 1)) : 0;
  for (auto [column, code] : llvm::enumerate(codes))
    code = static_cast<uint8_t>(from.load(plane, row, column) - lowest);
}

//===- Packing ----------------------------------------------------------------------------------------------------===//

compress::AffineFormat AffineAttr::getFormat() const {
  return {getBits(), getGroup(), getHasZeros(), getIsSigned(), getScales().isF16()};
}

namespace {
/// Writes scales, zero points and codes into planes whose bytes were 0. Rows may be written in parallel.
class PlaneWriter {
public:
  PlaneWriter(AffineAttr encoding, ArrayRef<int64_t> shape, ArrayRef<MutableArrayRef<char>> planes)
      : planes(planes), groups(encoding, shape), values(getCodePlane(encoding, shape[0], planes[0].size())) {
    for (MutableArrayRef<char> plane : planes)
      llvm::fill(plane, 0);
  }

  void store(int64_t row, int64_t group, compress::AffineScale scale) const {
    groups.storeScale(planes, row, group, scale.scale);
    groups.storeZero(planes, row, group, scale.zero);
  }
  void store(int64_t row, int64_t column, int64_t code) const { values.store(planes[0], row, column, code); }

private:
  ArrayRef<MutableArrayRef<char>> planes;
  GroupPlanes groups;
  CodePlane values;
};
} // namespace

LogicalResult AffineAttr::pack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<char> dense,
                               ArrayRef<MutableArrayRef<char>> planes,
                               llvm::function_ref<InFlightDiagnostic()> emitError) const {
  PlainElements elements(elementType);
  PlaneWriter writer(*this, shape, planes);
  compress::AffineFormat format = getFormat();
  int64_t rows = shape[0], columns = shape[1], width = format.width(columns);
  std::atomic<int64_t> failed = rows;
  llvm::parallelFor(0, rows, [&](int64_t row) {
    SmallVector<float> group;
    for (int64_t begin = 0; begin < columns; begin += width) {
      group.clear();
      for (int64_t column = begin, end = std::min(begin + width, columns); column < end; ++column)
        group.push_back(elements.load(dense, row * columns + column));
      std::optional<compress::AffineScale> scale = compress::fitScale(format, group);
      if (!scale) {
        for (int64_t first = failed; row < first && !failed.compare_exchange_weak(first, row);)
          ;
        return;
      }
      writer.store(row, begin / width, *scale);
      for (auto [i, element] : llvm::enumerate(group))
        writer.store(row, begin + i, compress::roundToCode(format, *scale, element));
    }
  });
  if (failed == rows)
    return success();
  return emitError() << "cannot quantize row " << failed.load()
                     << ": its elements are not all finite, or too large for scales of " << getScales();
}

void AffineAttr::packCodes(ArrayRef<int64_t> shape, ArrayRef<int16_t> codes, ArrayRef<compress::AffineScale> scales,
                           ArrayRef<MutableArrayRef<char>> planes) const {
  PlaneWriter writer(*this, shape, planes);
  int64_t columns = shape[1], groups = getGroups(shape);
  for (int64_t row = 0; row < shape[0]; ++row) {
    for (int64_t group = 0; group < groups; ++group)
      writer.store(row, group, scales[row * groups + group]);
    for (int64_t column = 0; column < columns; ++column)
      writer.store(row, column, static_cast<int64_t>(codes[row * columns + column]));
  }
}

void AffineAttr::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                        MutableArrayRef<char> dense) const {
  PlainElements elements(elementType);
  GroupPlanes groupPlanes(*this, shape);
  CodePlane values = getCodePlane(*this, shape[0], planes[0].size());
  int64_t width = getFormat().width(shape[1]);
  for (int64_t row = 0; row < shape[0]; ++row)
    for (int64_t column = 0; column < shape[1]; ++column) {
      int64_t group = column / width;
      int64_t code = values.load(planes[0], row, column) - groupPlanes.loadZero(planes, row, group);
      float element = static_cast<float>(code) * groupPlanes.loadScale(planes, row, group);
      elements.store(dense, row * shape[1] + column, element);
    }
}

//===- IR ---------------------------------------------------------------------------------------------------------===//

static Value createIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

/// Reads code `column` of row `row` as f32.
static Value readCode(OpBuilder &builder, Location loc, AffineAttr encoding, Value plane, Value row, Value column) {
  if (encoding.getTransposed())
    std::swap(row, column);
  Value code = buildCodeBits(builder, loc, encoding.getBits(), encoding.getIsSigned(), plane, row, column);
  if (encoding.getIsSigned())
    return arith::SIToFPOp::create(builder, loc, builder.getF32Type(), code);
  return arith::UIToFPOp::create(builder, loc, builder.getF32Type(), code);
}

Value AffineAttr::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                               ValueRange indices) const {
  return buildCode(builder, loc, elementType, planes, indices[0], indices[1], indices[1]);
}

Value AffineAttr::buildCode(OpBuilder &builder, Location loc, Type elementType, ValueRange planes, Value row,
                            Value place, Value column) const {
  Value group = createIndex(builder, loc, 0);
  if (getGroup())
    group = arith::DivUIOp::create(builder, loc, column, createIndex(builder, loc, getGroup()));
  Value zero;
  if (getHasZeros())
    zero = readCode(builder, loc, *this, planes[2], row, group);
  else
    zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(static_cast<float>(getMiddle())));
  Value code = arith::SubFOp::create(builder, loc, readCode(builder, loc, *this, planes[0], row, place), zero);
  SmallVector<Value> at{row, group};
  if (getTransposed())
    std::swap(at[0], at[1]);
  Value scale = tensor::ExtractOp::create(builder, loc, planes[1], at);
  if (!getScales().isF32())
    scale = arith::ExtFOp::create(builder, loc, builder.getF32Type(), scale);
  Value element = arith::MulFOp::create(builder, loc, code, scale);
  return elementType.isF32() ? element : arith::TruncFOp::create(builder, loc, elementType, element);
}

ActivationRounding AffineAttr::getActivationRounding() const {
  return {getActivations(), getGroup() ? getGroup() : kActivationGroup};
}

std::string AffineAttr::getKernelSuffix() const { return "affine" + std::to_string(getBits()); }
