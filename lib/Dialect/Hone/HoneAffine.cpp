//===- HoneAffine.cpp - integers with a scale a group -----------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hone.affine: the layout of its planes, rounding to nearest, and the way back.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hone/PlainElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/Support/Parallel.h"

#include <atomic>
#include <cmath>

using namespace mlir;
using namespace hone;

/// Inputs that share a scale of the activations where the weight has no groups.
static constexpr int64_t kActivationGroup = 512;

LogicalResult AffineAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t bits, int64_t group,
                                 FloatType scales, bool, bool, bool transposed, int64_t activations, bool atLeast) {
  if (bits != 2 && bits != 4 && bits != 8) // affine C1
    return emitError() << "unsupported number of bits " << bits << "; supported: 2, 4, 8";
  if (group < 0 || group > (int64_t(1) << 32) || group * bits % 8 != 0) // affine C2
    return emitError() << "expected the levels of a group to fill whole bytes, but got a group of " << group;
  if (!isa<Float32Type, Float16Type>(scales)) // affine C3
    return emitError() << "unsupported type of scales " << scales << "; supported: f32, f16";
  if (transposed && bits != 8) // affine C4
    return emitError() << "expected levels that are stored transposed to have 8 bits, but got " << bits;
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
  if (shape.size() != 2 || !isa<Float32Type, Float16Type, BFloat16Type>(elementType)) // affine C7
    return emitError() << "expected a tensor of quantized elements to have 2 dimensions and elements of f32, f16 or "
                          "bf16, but got "
                       << shape.size() << " and " << elementType;
  return success();
}

int64_t AffineAttr::getGroups(ArrayRef<int64_t> shape) const {
  return getGroup() ? llvm::divideCeil(shape[1], getGroup()) : 1;
}

//===- Planes -----------------------------------------------------------------------------------------------------===//

/// Bytes of `columns` levels.
static int64_t getLevelBytes(int64_t columns, int64_t bits) { return llvm::divideCeil(columns * bits, 8); }

SmallVector<EncodingPlane> AffineAttr::getPlanes(ArrayRef<int64_t> shape, Type) const {
  auto byte = IntegerType::get(getContext(), 8);
  int64_t groups = getGroups(shape);
  int64_t levels = getGroup() && !getTransposed() ? groups * getGroup() : shape[1];
  auto plane = [&](int64_t columns, Type type) {
    return getTransposed() ? RankedTensorType::get({columns, shape[0]}, type)
                           : RankedTensorType::get({shape[0], columns}, type);
  };
  SmallVector<EncodingPlane> planes{{"values", plane(getLevelBytes(levels, getBits()), byte)},
                                    {"scales", plane(groups, getScales())}};
  if (getHasZeros())
    planes.push_back({"zeros", plane(getLevelBytes(groups, getBits()), byte)});
  return planes;
}

namespace {
/// A plane of levels in memory: where each lies, and how it is read and written.
class LevelPlane {
public:
  LevelPlane(AffineAttr encoding, int64_t rows, int64_t bytes)
      : bits(encoding.getBits()), isSigned(encoding.getIsSigned()), isTransposed(encoding.getTransposed()), rows(rows),
        rowBytes(bytes / std::max<int64_t>(rows, 1)) {}

  int64_t load(ArrayRef<char> plane, int64_t row, int64_t column) const {
    auto byte = static_cast<uint8_t>(plane[byteOf(row, column)]);
    auto level = static_cast<int64_t>(byte >> shiftOf(column) & mask());
    return isSigned && level > mask() / 2 ? level - mask() - 1 : level;
  }

  /// Into a plane whose bytes were 0.
  void store(MutableArrayRef<char> plane, int64_t row, int64_t column, int64_t level) const {
    char &byte = plane[byteOf(row, column)];
    byte = static_cast<char>(byte | (level & mask()) << shiftOf(column));
  }

private:
  int64_t mask() const { return (int64_t(1) << bits) - 1; }
  int64_t shiftOf(int64_t column) const { return column * bits % 8; }
  int64_t byteOf(int64_t row, int64_t column) const {
    return isTransposed ? column * rows + row : row * rowBytes + column * bits / 8;
  }

  int64_t bits;
  bool isSigned, isTransposed;
  int64_t rows, rowBytes;
};

/// Scales and zero points of a matrix.
class GroupPlanes {
public:
  GroupPlanes(AffineAttr encoding, ArrayRef<int64_t> shape)
      : encoding(encoding), rows(shape[0]), groups(encoding.getGroups(shape)), scales(encoding.getScales()),
        zeros(encoding, rows, rows * getLevelBytes(groups, encoding.getBits())) {}

  float loadScale(ArrayRef<ArrayRef<char>> planes, int64_t row, int64_t group) const {
    return scales.load(planes[1], placeOf(row, group));
  }
  int64_t loadZero(ArrayRef<ArrayRef<char>> planes, int64_t row, int64_t group) const {
    return encoding.getHasZeros() ? zeros.load(planes[2], row, group) : encoding.getMiddle();
  }
  /// Returns the scale as it is after rounding.
  float storeScale(ArrayRef<MutableArrayRef<char>> planes, int64_t row, int64_t group, float scale) const {
    scales.store(planes[1], placeOf(row, group), scale);
    return scales.load(planes[1], placeOf(row, group));
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
  LevelPlane zeros;
};
} // namespace

void AffineAttr::loadLevels(ArrayRef<char> plane, int64_t rows, int64_t row, MutableArrayRef<uint8_t> levels) const {
  LevelPlane from(*this, rows, plane.size());
  int64_t lowest = getIsSigned() ? -(int64_t(1) << (getBits() - 1)) : 0;
  for (auto [column, level] : llvm::enumerate(levels))
    level = static_cast<uint8_t>(from.load(plane, row, column) - lowest);
}

//===- Packing ----------------------------------------------------------------------------------------------------===//

namespace {
/// Rounds groups of floats to levels, and writes those with their scales and zero points. Rows may be written in parallel.
class Quantizer {
public:
  Quantizer(AffineAttr encoding, ArrayRef<int64_t> shape, ArrayRef<MutableArrayRef<char>> planes)
      : encoding(encoding), planes(planes), groups(encoding, shape), values(encoding, shape[0], planes[0].size()),
        lowest(encoding.getIsSigned() ? -(int64_t(1) << (encoding.getBits() - 1)) : 0),
        highest(lowest + (int64_t(1) << encoding.getBits()) - 1) {}

  /// The elements of `row` from `column` on, which are group number `group`. False, with what was written undefined, where
  /// they have no finite scale.
  bool pack(ArrayRef<float> elements, int64_t row, int64_t group, int64_t column) const;

private:
  float chooseScale(float least, float most) const;
  int64_t quantize(float element, float scale, int64_t zero) const {
    // In f64, where the inverse of a small scale is finite.
    double steps = scale == 0 ? 0 : std::nearbyint(static_cast<double>(element) / static_cast<double>(scale));
    return static_cast<int64_t>(
        std::clamp(steps + static_cast<double>(zero), static_cast<double>(lowest), static_cast<double>(highest)));
  }

  AffineAttr encoding;
  ArrayRef<MutableArrayRef<char>> planes;
  GroupPlanes groups;
  LevelPlane values;
  int64_t lowest, highest;
};
} // namespace

float Quantizer::chooseScale(float least, float most) const {
  if (encoding.getHasZeros())
    return (most - least) / static_cast<float>(highest - lowest);
  float largest = most > -least ? most : least;
  return largest / static_cast<float>(-(int64_t(1) << (encoding.getBits() - 1)));
}

bool Quantizer::pack(ArrayRef<float> elements, int64_t row, int64_t group, int64_t column) const {
  float least = 0, most = 0;
  bool isFinite = true;
  for (float element : elements) {
    isFinite &= std::isfinite(element);
    least = std::min(least, element);
    most = std::max(most, element);
  }
  float scale = groups.storeScale(planes, row, group, chooseScale(least, most));
  if (!isFinite || !std::isfinite(scale))
    return false;
  int64_t zero = encoding.getHasZeros() ? quantize(-least, scale, lowest) : encoding.getMiddle();
  groups.storeZero(planes, row, group, zero);
  for (float element : elements)
    values.store(planes[0], row, column++, quantize(element, scale, zero));
  return true;
}

LogicalResult AffineAttr::pack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<char> dense,
                               ArrayRef<MutableArrayRef<char>> planes,
                               llvm::function_ref<InFlightDiagnostic()> emitError) const {
  PlainElements elements(elementType);
  for (MutableArrayRef<char> plane : planes)
    llvm::fill(plane, 0);
  Quantizer quantizer(*this, shape, planes);
  int64_t rows = shape[0], columns = shape[1], width = getGroup() ? getGroup() : std::max<int64_t>(columns, 1);
  std::atomic<int64_t> failed = rows;
  llvm::parallelFor(0, rows, [&](int64_t row) {
    SmallVector<float> group;
    for (int64_t begin = 0; begin < columns; begin += width) {
      group.clear();
      for (int64_t column = begin, end = std::min(begin + width, columns); column < end; ++column)
        group.push_back(elements.load(dense, row * columns + column));
      if (!quantizer.pack(group, row, begin / width, begin))
        for (int64_t first = failed; row < first && !failed.compare_exchange_weak(first, row);)
          ;
    }
  });
  if (failed == rows)
    return success();
  return emitError() << "cannot quantize row " << failed.load()
                     << ": its elements are not all finite, or too large for scales of " << getScales();
}

void AffineAttr::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                        MutableArrayRef<char> dense) const {
  PlainElements elements(elementType);
  GroupPlanes groupPlanes(*this, shape);
  LevelPlane values(*this, shape[0], planes[0].size());
  int64_t width = getGroup() ? getGroup() : std::max<int64_t>(shape[1], 1);
  for (int64_t row = 0; row < shape[0]; ++row)
    for (int64_t column = 0; column < shape[1]; ++column) {
      int64_t group = column / width;
      int64_t level = values.load(planes[0], row, column) - groupPlanes.loadZero(planes, row, group);
      float element = static_cast<float>(level) * groupPlanes.loadScale(planes, row, group);
      elements.store(dense, row * shape[1] + column, element);
    }
}

//===- IR ---------------------------------------------------------------------------------------------------------===//

static Value createIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

/// Reads level `column` of row `row` as f32.
static Value readLevel(OpBuilder &builder, Location loc, AffineAttr encoding, Value plane, Value row, Value column) {
  int64_t bits = encoding.getBits();
  if (encoding.getTransposed())
    std::swap(row, column);
  Value place = column, perByte = createIndex(builder, loc, 8 / bits);
  if (bits < 8)
    place = arith::DivUIOp::create(builder, loc, column, perByte);
  Value level = tensor::ExtractOp::create(builder, loc, plane, ValueRange{row, place});
  if (bits < 8) {
    // The level moves to the top of the byte, and down again, which fills up with zeros or with its sign.
    Value within = arith::RemUIOp::create(builder, loc, column, perByte);
    Value above = arith::SubIOp::create(builder, loc, createIndex(builder, loc, 8 / bits - 1), within);
    above = arith::MulIOp::create(builder, loc, above, createIndex(builder, loc, bits));
    above = arith::IndexCastOp::create(builder, loc, builder.getI8Type(), above);
    level = arith::ShLIOp::create(builder, loc, level, above);
    Value down = arith::ConstantOp::create(builder, loc, builder.getI8IntegerAttr(8 - bits));
    level = encoding.getIsSigned() ? Value(arith::ShRSIOp::create(builder, loc, level, down))
                                   : Value(arith::ShRUIOp::create(builder, loc, level, down));
  }
  if (encoding.getIsSigned())
    return arith::SIToFPOp::create(builder, loc, builder.getF32Type(), level);
  return arith::UIToFPOp::create(builder, loc, builder.getF32Type(), level);
}

Value AffineAttr::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                               ValueRange indices) const {
  Value row = indices[0], column = indices[1], group = createIndex(builder, loc, 0);
  if (getGroup())
    group = arith::DivUIOp::create(builder, loc, column, createIndex(builder, loc, getGroup()));
  Value zero;
  if (getHasZeros())
    zero = readLevel(builder, loc, *this, planes[2], row, group);
  else
    zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(static_cast<float>(getMiddle())));
  Value level = arith::SubFOp::create(builder, loc, readLevel(builder, loc, *this, planes[0], row, column), zero);
  SmallVector<Value> place{row, group};
  if (getTransposed())
    std::swap(place[0], place[1]);
  Value scale = tensor::ExtractOp::create(builder, loc, planes[1], place);
  if (!getScales().isF32())
    scale = arith::ExtFOp::create(builder, loc, builder.getF32Type(), scale);
  Value element = arith::MulFOp::create(builder, loc, level, scale);
  return elementType.isF32() ? element : arith::TruncFOp::create(builder, loc, elementType, element);
}

ActivationRounding AffineAttr::getActivationRounding() const {
  return {getActivations(), getGroup() ? getGroup() : kActivationGroup};
}

std::string AffineAttr::getKernelSuffix() const { return "affine" + std::to_string(getBits()); }
