// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hrt.chunks: the layout itself is that of the device's kernels (runtime/cuda/packing), which the runtime's code writes.

#include "Panels.h"

#include "hone/Dialect/Hone/PlainElements.h"

#include "cuda/packing/pack_linear.h"

using namespace mlir;

namespace hone::hrt {

static cuda::LevelShape getShape(AffineAttr affine, ArrayRef<int64_t> shape) {
  return {static_cast<int32_t>(affine.getBits()), shape[0], shape[1], affine.getGroup()};
}

bool ChunksAttr::canPack(Attribute encoding) {
  auto affine = dyn_cast_or_null<AffineAttr>(encoding);
  static constexpr int64_t groups[] = {0, 32, 64, 128};
  return affine && (affine.getBits() == 8 || affine.getBits() == 4) && llvm::is_contained(groups, affine.getGroup()) &&
         (affine.getActivations() == 0 || affine.getAtLeast());
}

LogicalResult ChunksAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, AffineAttr of) {
  if (!canPack(of)) // chunks C1
    return emitError() << "unsupported levels " << of
                       << " in chunks; supported: 8 or 4 bits in groups of 0, 32, 64 or 128, with activations rounded "
                          "at least or not at all";
  return success();
}

LogicalResult ChunksAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                         llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 2 || !elementType.isF32()) // chunks C2
    return emitError() << "expected a tensor in chunks to have 2 dimensions and elements of f32, but got "
                       << shape.size() << " and " << elementType;
  return success();
}

SmallVector<EncodingPlane> ChunksAttr::getPlanes(ArrayRef<int64_t> shape, Type) const {
  cuda::LevelShape levels = getShape(getOf(), shape);
  Type byte = IntegerType::get(getContext(), 8);
  SmallVector<EncodingPlane> planes{
      {"values", RankedTensorType::get({shape[0], levels.chunks(), 64}, byte)},
      {"scales", RankedTensorType::get({shape[0], levels.groups()}, getOf().getScales())}};
  if (getOf().getHasZeros())
    planes.push_back({"zeros", RankedTensorType::get({shape[0], levels.groups()}, byte)});
  return planes;
}

bool ChunksAttr::repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
                        ArrayRef<MutableArrayRef<char>> planes) const {
  if (source != getOf())
    return false;
  AffineAttr affine = getOf();
  cuda::LevelShape levels = getShape(affine, shape);
  SmallVector<uint8_t> all(shape[0] * shape[1]);
  for (int64_t row = 0; row < shape[0]; ++row)
    affine.loadLevels(from[0], shape[0], row, MutableArrayRef(all).slice(row * shape[1], shape[1]));
  cuda::packLevels(levels, all.data(), shape[1], 1, asSpan(planes[0]));
  AffineGroups groups = loadGroups(affine, shape, from);
  cuda::packGroups(levels, affine.getScales().getIntOrFloatBitWidth() / 8, groups.scales.data(), asSpan(planes[1]));
  if (affine.getHasZeros())
    cuda::packGroups(levels, 1, groups.zeros.data(), asSpan(planes[2]));
  return true;
}

LogicalResult ChunksAttr::pack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<char> dense,
                               ArrayRef<MutableArrayRef<char>> planes,
                               llvm::function_ref<InFlightDiagnostic()> emitError) const {
  return packThrough(getOf(), *this, shape, elementType, dense, planes, emitError);
}

/// What a zero point is where there is no plane of them: levels are counted from 0.
static int64_t getMiddle(AffineAttr affine) { return int64_t(1) << (affine.getBits() - 1); }

void ChunksAttr::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                        MutableArrayRef<char> dense) const {
  AffineAttr affine = getOf();
  cuda::LevelShape levels = getShape(affine, shape);
  PlainElements scales(affine.getScales()), to(elementType);
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t k = 0; k < shape[1]; ++k) {
      cuda::LevelPlace place = cuda::placeOf(levels, n, k);
      int64_t level = static_cast<uint8_t>(planes[0][place.byte]) >> place.shift & ((1 << affine.getBits()) - 1);
      int64_t group = n * levels.groups() + (affine.getGroup() ? k / affine.getGroup() : 0);
      int64_t zero = affine.getHasZeros() ? static_cast<uint8_t>(planes[2][group]) : getMiddle(affine);
      to.store(dense, n * shape[1] + k, static_cast<float>(level - zero) * scales.load(planes[1], group));
    }
}

/// The level of (output, input), as a byte: where placeOf of pack_linear.h says.
static Value buildLevel(IndexBuilder &b, AffineAttr affine, Value plane, Value output, Value input) {
  bool isByte = affine.getBits() == 8;
  int64_t chunkInputs = isByte ? 64 : 128;
  Value chunk = b.divide(input, chunkInputs), part = b.divide(b.remainder(input, chunkInputs), 32);
  Value lane = b.divide(b.remainder(input, 32), 8), i = b.remainder(input, 8);
  Value place = b.multiply(lane, 16);
  if (isByte)
    return b.extract(plane, {output, chunk, b.add(b.add(place, b.multiply(part, 8)), i)});
  // Input 2j of a word is in its bits from 4j on, input 2j + 1 sixteen bits above.
  Value bit = b.add(b.multiply(b.divide(i, 2), 4), b.multiply(b.remainder(i, 2), 16));
  place = b.add(b.add(place, b.multiply(part, 4)), b.divide(bit, 8));
  Value isHigh = b.divide(b.remainder(bit, 8), 4);
  return b.half(b.extract(plane, {output, chunk, place}), isHigh);
}

Value ChunksAttr::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                               ValueRange indices) const {
  AffineAttr affine = getOf();
  IndexBuilder b(builder, loc);
  Value level = b.number(buildLevel(b, affine, planes[0], indices[0], indices[1]));
  SmallVector<Value> group{indices[0], affine.getGroup() ? b.divide(indices[1], affine.getGroup()) : b.constant(0)};
  Value zero = affine.getHasZeros() ? b.number(b.extract(planes[2], group)) : b.number(getMiddle(affine));
  Value scale = b.extract(planes[1], group);
  if (!affine.getScales().isF32())
    scale = arith::ExtFOp::create(builder, loc, builder.getF32Type(), scale);
  Value element = arith::MulFOp::create(builder, loc, arith::SubFOp::create(builder, loc, level, zero), scale);
  return elementType.isF32() ? element : arith::TruncFOp::create(builder, loc, elementType, element);
}

std::string ChunksAttr::getKernelSuffix() const { return getOf().getBits() == 8 ? "u8" : "u4"; }

} // namespace hone::hrt
