// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hrt.panels and blocks of keys and values: the layouts themselves are the runtime's (runtime/cpu/packing), which writes and
// reads them.

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hone/PlainElements.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "cpu/packing/layout.h"
#include "cpu/packing/pack_linear.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/Parallel.h"

using namespace mlir;

namespace hone::hrt {

//===----------------------------------------------------------------------===//
// What is packed
//===----------------------------------------------------------------------===//

static FloatType getFloat(PanelsAttr panels) {
  return cast<FloatType>(cast<TypeAttr>(panels.getElements()).getValue());
}

static cpu::PackedFormat getFormat(PanelsAttr panels) {
  if (AffineAttr affine = panels.getAffine())
    return affine.getBits() == 4 ? cpu::PackedFormat::U4 : cpu::PackedFormat::U8;
  FloatType type = getFloat(panels);
  if (type.isF32())
    return cpu::PackedFormat::F32;
  return type.isF16() ? cpu::PackedFormat::F16 : cpu::PackedFormat::Bf16;
}

static cpu::LinearShape getLinearShape(PanelsAttr panels, ArrayRef<int64_t> shape) {
  AffineAttr affine = panels.getAffine();
  return {shape[0], shape[1], affine ? affine.getGroup() : 0};
}

/// What zero points are where there are none: levels in panels are counted from 0.
static int64_t getMiddle(AffineAttr affine) { return affine.getBits() == 4 ? cpu::kU4Zero : cpu::kU8Zero; }

static bool isPackable(Attribute elements) {
  if (auto affine = dyn_cast<AffineAttr>(elements)) {
    static constexpr int64_t groups[] = {0, 32, 64, 128};
    return affine.getBits() >= 4 && llvm::is_contained(groups, affine.getGroup());
  }
  auto type = dyn_cast<TypeAttr>(elements);
  return type && isa<Float32Type, Float16Type, BFloat16Type>(type.getValue());
}

bool PanelsAttr::canPack(Attribute encoding) {
  return !encoding || isa<StoredAttr>(encoding) || (isa<AffineAttr>(encoding) && isPackable(encoding));
}

LogicalResult PanelsAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Attribute elements) {
  if (!isPackable(elements)) // panels C1
    return emitError() << "unsupported packed elements " << elements
                       << "; supported: f32, f16, bf16, #hone.affine of 4 or 8 bits in groups of 0, 32, 64 or 128";
  return success();
}

LogicalResult PanelsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                         llvm::function_ref<InFlightDiagnostic()> emitError) const {
  bool isSame = !getAffine() && elementType == getFloat(*this);
  if (shape.size() != 2 || (!isSame && !elementType.isF32())) // panels C2
    return emitError() << "expected a tensor in panels of " << getElements()
                       << " to have 2 dimensions and elements of f32"
                       << (getAffine() || getFloat(*this).isF32() ? "" : " or the same") << ", but got " << shape.size()
                       << " and " << elementType;
  return success();
}

static LogicalResult verifyBlocks(StringRef what, ArrayRef<int64_t> shape, Type elementType,
                                  llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (shape.size() != 4 || !KeyBlocksAttr::canBlock(elementType)) // key_blocks C1, value_blocks C1
    return emitError() << "expected " << what
                       << " in blocks to have 4 dimensions and elements of f32, f16 or bf16, but got " << shape.size()
                       << " and " << elementType;
  return success();
}

StringRef KeyBlocksAttr::getLayoutName() const { return getMnemonic(); }

StringRef ValueBlocksAttr::getLayoutName() const { return getMnemonic(); }

LogicalResult KeyBlocksAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                            llvm::function_ref<InFlightDiagnostic()> emitError) const {
  return verifyBlocks("keys", shape, elementType, emitError);
}

LogicalResult ValueBlocksAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                              llvm::function_ref<InFlightDiagnostic()> emitError) const {
  return verifyBlocks("values", shape, elementType, emitError);
}

SmallVector<EncodingPlane> PanelsAttr::getPlanes(ArrayRef<int64_t> shape, Type) const {
  cpu::PackedFormat format = getFormat(*this);
  cpu::LinearShape linear = getLinearShape(*this, shape);
  std::array<int64_t, 4> values = cpu::packedLinearShape(format, linear);
  AffineAttr affine = getAffine();
  if (!affine)
    return {{"values", RankedTensorType::get(values, getFloat(*this))}};
  auto byte = IntegerType::get(getContext(), 8);
  std::array<int64_t, 3> groups = cpu::packedScaleShape(format, linear);
  SmallVector<EncodingPlane> planes{{"values", RankedTensorType::get(values, byte)},
                                    {"scales", RankedTensorType::get(groups, affine.getScales())}};
  if (affine.getHasZeros())
    planes.push_back({"zeros", RankedTensorType::get(groups, byte)});
  return planes;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

static std::span<uint8_t> asSpan(MutableArrayRef<char> plane) {
  return {reinterpret_cast<uint8_t *>(plane.data()), plane.size()};
}

/// Levels of 16 outputs at a time, one byte each, and then in their panel.
static void packLevels(PanelsAttr panels, ArrayRef<int64_t> shape, ArrayRef<char> from, MutableArrayRef<char> to) {
  AffineAttr affine = panels.getAffine();
  cpu::PackedFormat format = getFormat(panels);
  int64_t rows = shape[0], columns = shape[1];
  llvm::parallelFor(0, llvm::divideCeil(rows, cpu::kPanelOutputs), [&](int64_t panel) {
    int64_t first = panel * cpu::kPanelOutputs, count = std::min(cpu::kPanelOutputs, rows - first);
    SmallVector<uint8_t> levels(count * columns);
    for (int64_t row = 0; row < count; ++row)
      affine.loadLevels(from, rows, first + row, MutableArrayRef(levels).slice(row * columns, columns));
    cpu::LinearShape part{count, columns, affine.getGroup()};
    int64_t bytes = cpu::packedLinearBytes(format, part);
    cpu::packLinearWeight(format, part, {levels.data(), columns, 1}, asSpan(to.slice(panel * bytes, bytes)));
  });
}

static void packGroups(PanelsAttr panels, ArrayRef<int64_t> shape, ArrayRef<ArrayRef<char>> from,
                       ArrayRef<MutableArrayRef<char>> to) {
  AffineAttr affine = panels.getAffine();
  cpu::PackedFormat format = getFormat(panels);
  cpu::LinearShape linear = getLinearShape(panels, shape);
  int64_t rows = shape[0], groups = affine.getGroups(shape), bytes = affine.getScales().getIntOrFloatBitWidth() / 8;
  SmallVector<char> scales(rows * groups * bytes);
  SmallVector<uint8_t> zeros(affine.getHasZeros() ? rows * groups : 0);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t group = 0; group < groups; ++group) {
      int64_t place = row * groups + group, source = affine.getTransposed() ? group * rows + row : place;
      std::memcpy(scales.data() + place * bytes, from[1].data() + source * bytes, bytes);
    }
  for (int64_t row = 0; affine.getHasZeros() && row < rows; ++row)
    affine.loadLevels(from[2], rows, row, MutableArrayRef(zeros).slice(row * groups, groups));
  cpu::packLinearScales(format, linear, bytes, scales.data(), asSpan(to[1]));
  if (affine.getHasZeros())
    cpu::packLinearScales(format, linear, 1, zeros.data(), asSpan(to[2]));
}

bool PanelsAttr::repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
                        ArrayRef<MutableArrayRef<char>> planes) const {
  if (getAffine()) {
    if (source != getAffine())
      return false;
    packLevels(*this, shape, from[0], planes[0]);
    packGroups(*this, shape, from, planes);
    return true;
  }
  auto stored = dyn_cast_or_null<StoredAttr>(source);
  if (!stored || stored.getType() != getFloat(*this))
    return false;
  cpu::WeightView view{from[0].data(), stored.getTransposed() ? 1 : shape[1], stored.getTransposed() ? shape[0] : 1};
  cpu::packLinearWeight(getFormat(*this), getLinearShape(*this, shape), view, asSpan(planes[0]));
  return true;
}

LogicalResult PanelsAttr::pack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<char> dense,
                               ArrayRef<MutableArrayRef<char>> planes,
                               llvm::function_ref<InFlightDiagnostic()> emitError) const {
  EncodingInterface source = getAffine();
  if (!source && elementType == getFloat(*this)) {
    repack(shape, StoredAttr::get(getFloat(*this)), dense, planes);
    return success();
  }
  if (!source)
    source = StoredAttr::get(getFloat(*this));
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

/// Inputs of a step, and how many of its bytes or floats they lie in.
static std::pair<int64_t, int64_t> getStep(PanelsAttr panels) {
  constexpr int64_t anyInputs = cpu::kQuantizedInputs;
  std::array<int64_t, 4> shape = cpu::packedLinearShape(getFormat(panels), {1, anyInputs});
  return {anyInputs / shape[1], shape[3]};
}

void PanelsAttr::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                        MutableArrayRef<char> dense) const {
  AffineAttr affine = getAffine();
  SmallVector<EncodingPlane> types = getPlanes(shape, elementType);
  auto [inputs, elements] = getStep(*this);
  int64_t steps = types[0].type.getDimSize(1);
  PlainElements floats(affine ? affine.getScales() : getFloat(*this)), to(elementType);
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t k = 0; k < shape[1]; ++k) {
      int64_t panel = n / cpu::kPanelOutputs, output = n % cpu::kPanelOutputs, place = k % inputs;
      int64_t line = (panel * steps + k / inputs) * cpu::kPanelOutputs + output,
              at = line * elements + place % elements;
      float element;
      if (affine) {
        auto byte = static_cast<uint8_t>(planes[0][at]);
        int64_t level = affine.getBits() == 8 ? byte : byte >> (place < elements ? 0 : 4) & 0xf;
        int64_t group = affine.getGroup() ? k / affine.getGroup() : 0;
        int64_t scale = (panel * types[1].type.getDimSize(1) + group) * cpu::kPanelOutputs + output;
        int64_t zero = affine.getHasZeros() ? static_cast<uint8_t>(planes[2][scale]) : getMiddle(affine);
        element = static_cast<float>(level - zero) * floats.load(planes[1], scale);
      } else {
        element = floats.load(planes[0], at);
      }
      to.store(dense, n * shape[1] + k, element);
    }
}

namespace {
/// Builds IR on indices.
class IndexBuilder {
public:
  IndexBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value divide(Value value, int64_t by) { return arith::DivUIOp::create(builder, loc, value, constant(by)); }
  Value remainder(Value value, int64_t by) { return arith::RemUIOp::create(builder, loc, value, constant(by)); }
  Value extract(Value tensor, ValueRange place) { return tensor::ExtractOp::create(builder, loc, tensor, place); }
  Value number(Value level) { return arith::UIToFPOp::create(builder, loc, builder.getF32Type(), level); }
  Value number(int64_t level) {
    return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(static_cast<float>(level)));
  }
  /// The low half of `byte`, or where `place` is not below `elements` the high half.
  Value half(Value byte, Value place, int64_t elements);

private:
  OpBuilder &builder;
  Location loc;
};
} // namespace

Value IndexBuilder::half(Value byte, Value place, int64_t elements) {
  auto constantByte = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI8IntegerAttr(value));
  };
  Value isLow = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, place, constant(elements));
  Value low = arith::AndIOp::create(builder, loc, byte, constantByte(0xf));
  Value high = arith::ShRUIOp::create(builder, loc, byte, constantByte(4));
  return arith::SelectOp::create(builder, loc, isLow, low, high);
}

Value PanelsAttr::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                               ValueRange indices) const {
  IndexBuilder b(builder, loc);
  auto [inputs, elements] = getStep(*this);
  Value panel = b.divide(indices[0], cpu::kPanelOutputs), output = b.remainder(indices[0], cpu::kPanelOutputs);
  Value step = b.divide(indices[1], inputs), place = b.remainder(indices[1], inputs);
  Value element = b.extract(planes[0], {panel, step, output, elements < inputs ? b.remainder(place, elements) : place});
  if (AffineAttr affine = getAffine()) {
    if (affine.getBits() == 4)
      element = b.half(element, place, elements);
    SmallVector<Value> at{panel, affine.getGroup() ? b.divide(indices[1], affine.getGroup()) : b.constant(0), output};
    Value zero = affine.getHasZeros() ? b.number(b.extract(planes[2], at)) : b.number(getMiddle(affine));
    Value scale = b.extract(planes[1], at);
    if (!affine.getScales().isF32())
      scale = arith::ExtFOp::create(builder, loc, builder.getF32Type(), scale);
    Value level = arith::SubFOp::create(builder, loc, b.number(element), zero);
    return arith::MulFOp::create(builder, loc, level, scale);
  }
  return element.getType() == elementType ? element : arith::ExtFOp::create(builder, loc, elementType, element);
}

ActivationRounding PanelsAttr::getActivationRounding() const {
  AffineAttr affine = getAffine();
  return affine ? affine.getActivationRounding() : ActivationRounding();
}

std::string PanelsAttr::getKernelSuffix() const {
  switch (getFormat(*this)) {
  case cpu::PackedFormat::F32:
    return "f32";
  case cpu::PackedFormat::F16:
    return "f16";
  case cpu::PackedFormat::Bf16:
    return "bf16";
  case cpu::PackedFormat::U8:
    return "u8";
  case cpu::PackedFormat::U4:
    return "u4";
  }
  llvm_unreachable("a format that the enum does not have");
}

} // namespace hone::hrt
