// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hrt.panels of floats and of #hone.affine: the layout of include/hone/cpu/packing/layout.h.

#include "Panels.h"

#include "hone/Dialect/Hone/PlainElements.h"
#include "hone/cpu/packing/layout.h"

#include "llvm/Support/Parallel.h"

using namespace mlir;

namespace hone::hrt {

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

static cpu::PackedFormat getFormat(Type type) {
  if (type.isF32())
    return cpu::PackedFormat::F32;
  return type.isF16() ? cpu::PackedFormat::F16 : cpu::PackedFormat::Bf16;
}

static cpu::PackedFormat getCodeFormat(AffineAttr affine) {
  switch (affine.getBits()) {
  case 2:
    return cpu::PackedFormat::U2;
  case 3:
    return cpu::PackedFormat::U3;
  case 4:
    return cpu::PackedFormat::U4;
  case 5:
    return cpu::PackedFormat::U5;
  case 6:
    return cpu::PackedFormat::U6;
  default:
    return cpu::PackedFormat::U8;
  }
}

cpu::PackedFormat getFormat(Attribute elements) {
  if (auto affine = dyn_cast<AffineAttr>(elements))
    return getCodeFormat(affine);
  return getFormat(cast<TypeAttr>(elements).getValue());
}

cpu::LinearShape getLinearShape(AffineAttr affine, ArrayRef<int64_t> shape) {
  return {shape[0], shape[1], affine ? affine.getGroup() : 0};
}

static std::string getSuffix(cpu::PackedFormat format) {
  switch (format) {
  case cpu::PackedFormat::F32:
    return "f32";
  case cpu::PackedFormat::F16:
    return "f16";
  case cpu::PackedFormat::Bf16:
    return "bf16";
  case cpu::PackedFormat::U8:
    return "u8";
  case cpu::PackedFormat::U6:
    return "u6";
  case cpu::PackedFormat::U5:
    return "u5";
  case cpu::PackedFormat::U4:
    return "u4";
  case cpu::PackedFormat::U3:
    return "u3";
  case cpu::PackedFormat::U2:
    return "u2";
  }
  llvm_unreachable("a format that the enum does not have");
}

/// The array of elements or codes of a weight whose inputs are all kept.
static EncodingPlane getValues(cpu::PackedFormat format, cpu::LinearShape shape, Type element) {
  std::array<int64_t, 4> sizes = cpu::packedLinearShape(format, shape);
  return {"values", RankedTensorType::get(sizes, element)};
}

/// Calls `body(n, k, panel, output)` for each element.
static void forEachElement(ArrayRef<int64_t> shape, llvm::function_ref<void(int64_t, int64_t, int64_t, int64_t)> body) {
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t k = 0; k < shape[1]; ++k)
      body(n, k, n / cpu::kPanelOutputs, n % cpu::kPanelOutputs);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

namespace {
class FloatPanels : public PanelLayout {
public:
  explicit FloatPanels(Type type) : type(type), format(getFormat(type)) {}

  SmallVector<EncodingPlane> getArrays(ArrayRef<int64_t> shape) const override {
    return {getValues(format, {shape[0], shape[1]}, type)};
  }
  bool repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
              ArrayRef<MutableArrayRef<char>> arrays) const override;
  void unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> arrays,
              MutableArrayRef<char> dense) const override;
  Value buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange arrays,
                     ValueRange indices) const override;
  std::string getKernelSuffix() const override { return getSuffix(format); }

private:
  Type type;
  cpu::PackedFormat format;
};
} // namespace

bool FloatPanels::repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
                         ArrayRef<MutableArrayRef<char>> arrays) const {
  auto stored = dyn_cast_or_null<StoredAttr>(source);
  if (!stored || stored.getType() != type)
    return false;
  cpu::WeightView view{from[0].data(), stored.getTransposed() ? 1 : shape[1], stored.getTransposed() ? shape[0] : 1};
  cpu::packLinearWeight(format, {shape[0], shape[1]}, view, asSpan(arrays[0]));
  return true;
}

void FloatPanels::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> arrays,
                         MutableArrayRef<char> dense) const {
  std::array<int64_t, 4> sizes = cpu::packedLinearShape(format, {shape[0], shape[1]});
  int64_t lines = sizes[1], elements = sizes[3];
  PlainElements from(type), to(elementType);
  forEachElement(shape, [&](int64_t n, int64_t k, int64_t panel, int64_t output) {
    int64_t line = (panel * lines + k / elements) * cpu::kPanelOutputs + output;
    to.store(dense, n * shape[1] + k, from.load(arrays[0], line * elements + k % elements));
  });
}

Value FloatPanels::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange arrays,
                                ValueRange indices) const {
  IndexBuilder b(builder, loc);
  Value panel = b.divide(indices[0], cpu::kPanelOutputs), output = b.remainder(indices[0], cpu::kPanelOutputs);
  int64_t elements = cast<RankedTensorType>(arrays[0].getType()).getDimSize(3);
  Value line = b.divide(indices[1], elements), place = b.remainder(indices[1], elements);
  Value element = b.extract(arrays[0], {panel, line, output, place});
  return element.getType() == elementType ? element : arith::ExtFOp::create(builder, loc, elementType, element);
}

std::unique_ptr<PanelLayout> makeFloatPanels(Attribute elements) {
  auto type = dyn_cast<TypeAttr>(elements);
  if (!type || !isa<Float32Type, Float16Type, BFloat16Type>(type.getValue()))
    return nullptr;
  return std::make_unique<FloatPanels>(type.getValue());
}

//===----------------------------------------------------------------------===//
// Scales and zero points
//===----------------------------------------------------------------------===//

SmallVector<EncodingPlane> getGroupPlanes(AffineAttr affine, ArrayRef<int64_t> shape) {
  if (!affine)
    return {};
  std::array<int64_t, 3> groups = cpu::packedScaleShape(getFormat(affine), getLinearShape(affine, shape));
  SmallVector<EncodingPlane> planes{{"scales", RankedTensorType::get(groups, affine.getScales())}};
  if (affine.getHasZeros())
    planes.push_back({"zeros", RankedTensorType::get(groups, IntegerType::get(affine.getContext(), 8))});
  return planes;
}

void packGroups(AffineAttr affine, ArrayRef<int64_t> shape, ArrayRef<ArrayRef<char>> from,
                ArrayRef<MutableArrayRef<char>> to) {
  cpu::PackedFormat format = getFormat(affine);
  cpu::LinearShape linear = getLinearShape(affine, shape);
  int64_t rows = shape[0], groups = affine.getGroups(shape), bytes = affine.getScales().getIntOrFloatBitWidth() / 8;
  SmallVector<char> scales(rows * groups * bytes);
  SmallVector<uint8_t> zeros(affine.getHasZeros() ? rows * groups : 0);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t group = 0; group < groups; ++group) {
      int64_t place = row * groups + group, source = affine.getTransposed() ? group * rows + row : place;
      std::memcpy(scales.data() + place * bytes, from[1].data() + source * bytes, bytes);
    }
  for (int64_t row = 0; affine.getHasZeros() && row < rows; ++row)
    affine.loadCodes(from[2], rows, row, MutableArrayRef(zeros).slice(row * groups, groups));
  cpu::packLinearScales(format, linear, bytes, scales.data(), asSpan(to[1]));
  if (affine.getHasZeros())
    cpu::packLinearScales(format, linear, 1, zeros.data(), asSpan(to[2]));
}

PackedScales::PackedScales(AffineAttr affine, ArrayRef<int64_t> shape, ArrayRef<ArrayRef<char>> groups)
    : affine(affine), groups(groups), middle(cpu::bitLayoutOf(getFormat(affine))->middle()),
      groupsOfPanel(cpu::packedScaleShape(getFormat(affine), getLinearShape(affine, shape))[1]) {}

float PackedScales::apply(int64_t code, int64_t row, int64_t column) const {
  int64_t group = affine.getGroup() ? column / affine.getGroup() : 0;
  int64_t at = (row / cpu::kPanelOutputs * groupsOfPanel + group) * cpu::kPanelOutputs + row % cpu::kPanelOutputs;
  int64_t zero = affine.getHasZeros() ? static_cast<uint8_t>(groups[1][at]) : middle;
  return static_cast<float>(code - zero) * PlainElements(affine.getScales()).load(groups[0], at);
}

Value buildScaled(OpBuilder &builder, Location loc, AffineAttr affine, Value code, ValueRange groups,
                  ValueRange indices) {
  IndexBuilder b(builder, loc);
  SmallVector<Value> at{b.divide(indices[0], cpu::kPanelOutputs),
                        affine.getGroup() ? b.divide(indices[1], affine.getGroup()) : b.constant(0),
                        b.remainder(indices[0], cpu::kPanelOutputs)};
  Value zero = affine.getHasZeros() ? b.number(b.extract(groups[1], at))
                                    : b.number(cpu::bitLayoutOf(getFormat(affine))->middle());
  Value scale = b.extract(groups[0], at);
  if (!affine.getScales().isF32())
    scale = arith::ExtFOp::create(builder, loc, builder.getF32Type(), scale);
  Value number = arith::SubFOp::create(builder, loc, b.number(code), zero);
  return arith::MulFOp::create(builder, loc, number, scale);
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// Codes of 16 outputs at a time, one byte each, and then in their panel.
static void packCodes(AffineAttr affine, ArrayRef<int64_t> shape, ArrayRef<char> from, MutableArrayRef<char> to) {
  cpu::PackedFormat format = getFormat(affine);
  int64_t rows = shape[0], columns = shape[1];
  llvm::parallelFor(0, llvm::divideCeil(rows, cpu::kPanelOutputs), [&](int64_t panel) {
    int64_t first = panel * cpu::kPanelOutputs, count = std::min(cpu::kPanelOutputs, rows - first);
    SmallVector<uint8_t> codes(count * columns);
    for (int64_t row = 0; row < count; ++row)
      affine.loadCodes(from, rows, first + row, MutableArrayRef(codes).slice(row * columns, columns));
    cpu::LinearShape part{count, columns, affine.getGroup()};
    int64_t bytes = cpu::packedLinearBytes(format, part);
    cpu::packLinearWeight(format, part, {codes.data(), columns, 1}, asSpan(to.slice(panel * bytes, bytes)));
  });
}

namespace {
class AffinePanels : public PanelLayout {
public:
  explicit AffinePanels(AffineAttr affine) : affine(affine), format(getFormat(affine)) {}

  SmallVector<EncodingPlane> getArrays(ArrayRef<int64_t> shape) const override;
  bool repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
              ArrayRef<MutableArrayRef<char>> arrays) const override;
  void unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> arrays,
              MutableArrayRef<char> dense) const override;
  Value buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange arrays,
                     ValueRange indices) const override;
  std::string getKernelSuffix() const override { return getSuffix(format); }

private:
  AffineAttr affine;
  cpu::PackedFormat format;
};
} // namespace

SmallVector<EncodingPlane> AffinePanels::getArrays(ArrayRef<int64_t> shape) const {
  Type byte = IntegerType::get(affine.getContext(), 8);
  SmallVector<EncodingPlane> arrays{getValues(format, getLinearShape(affine, shape), byte)};
  llvm::append_range(arrays, getGroupPlanes(affine, shape));
  return arrays;
}

bool AffinePanels::repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
                          ArrayRef<MutableArrayRef<char>> arrays) const {
  if (source != affine)
    return false;
  packCodes(affine, shape, from[0], arrays[0]);
  packGroups(affine, shape, from, arrays);
  return true;
}

void AffinePanels::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> arrays,
                          MutableArrayRef<char> dense) const {
  std::array<int64_t, 4> sizes = cpu::packedLinearShape(format, getLinearShape(affine, shape));
  const cpu::BitLayout &codes = *cpu::bitLayoutOf(format);
  PackedScales scales(affine, shape, arrays.drop_front());
  PlainElements to(elementType);
  forEachElement(shape, [&](int64_t n, int64_t k, int64_t panel, int64_t output) {
    int64_t first = k / codes.inputs() * codes.lines, code = 0;
    for (const cpu::BitField &part : codes.parts[k % codes.inputs() / 4]) {
      int64_t line = (panel * sizes[1] + first + part.line) * cpu::kPanelOutputs + output;
      auto byte = static_cast<uint8_t>(arrays[0][line * sizes[3] + k % 4]);
      code |= (byte >> part.shift & ((1 << part.bits) - 1)) << part.to;
    }
    to.store(dense, n * shape[1] + k, scales.apply(code, n, k));
  });
}

Value AffinePanels::buildElement(OpBuilder &builder, Location loc, Type, ValueRange arrays, ValueRange indices) const {
  IndexBuilder b(builder, loc);
  Value panel = b.divide(indices[0], cpu::kPanelOutputs), output = b.remainder(indices[0], cpu::kPanelOutputs);
  Value code = b.code(*cpu::bitLayoutOf(format), arrays[0], panel, indices[1], output);
  return buildScaled(builder, loc, affine, code, arrays.drop_front(), indices);
}

std::unique_ptr<PanelLayout> makeAffinePanels(Attribute elements) {
  static constexpr int64_t groups[] = {0, 32, 64, 128};
  auto affine = dyn_cast<AffineAttr>(elements);
  if (!affine || !llvm::is_contained(groups, affine.getGroup()))
    return nullptr;
  return std::make_unique<AffinePanels>(affine);
}

} // namespace hone::hrt
