// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hrt.panels<#hone.nm<2:4, …>>: the layout of include/hone/cpu/packing/pack_sparse.h.

#include "Panels.h"

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/PlainElements.h"
#include "hone/cpu/packing/layout.h"
#include "hone/cpu/packing/pack_sparse.h"

#include "llvm/Support/Parallel.h"

using namespace mlir;

namespace hone::hrt {

static constexpr int64_t kGroupInputs = 4, kGroupKept = 2;

namespace {
class SparsePanels : public PanelLayout {
public:
  explicit SparsePanels(NmAttr nm) : nm(nm), affine(nm.getAffine()), format(getFormat(nm.getOf())) {}

  SmallVector<EncodingPlane> getArrays(ArrayRef<int64_t> shape) const override;
  bool repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
              ArrayRef<MutableArrayRef<char>> arrays) const override;
  void unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> arrays,
              MutableArrayRef<char> dense) const override;
  Value buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange arrays,
                     ValueRange indices) const override;
  /// Of what is kept: the kernels' names say that inputs are picked.
  std::string getKernelSuffix() const override { return getLayout(nm.getOf())->getKernelSuffix(); }

private:
  void packPanel(ArrayRef<int64_t> shape, int64_t panel, ArrayRef<ArrayRef<char>> from,
                 ArrayRef<MutableArrayRef<char>> to) const;

  NmAttr nm;
  AffineAttr affine; // of what is kept, or null
  cpu::PackedFormat format;
};
} // namespace

/// Kernels that pick inputs multiply signed bytes, code - zero: of 8 bits with zero points, that is 9.
static bool hasSparseKernel(AffineAttr affine) {
  return !affine || affine.getBits() == 4 || (affine.getBits() == 8 && !affine.getHasZeros());
}

std::unique_ptr<PanelLayout> makeSparsePanels(Attribute elements) {
  auto nm = dyn_cast<NmAttr>(elements);
  if (!nm || nm.getN() != kGroupKept || nm.getM() != kGroupInputs || !hasSparseKernel(nm.getAffine()) ||
      !getLayout(nm.getOf()))
    return nullptr;
  return std::make_unique<SparsePanels>(nm);
}

SmallVector<EncodingPlane> SparsePanels::getArrays(ArrayRef<int64_t> shape) const {
  cpu::LinearShape linear = getLinearShape(affine, shape);
  Type byte = IntegerType::get(nm.getContext(), 8), element = affine ? byte : cast<TypeAttr>(nm.getOf()).getValue();
  SmallVector<EncodingPlane> planes{{"values", RankedTensorType::get(cpu::packedSparseShape(format, linear), element)},
                                    {"indices", RankedTensorType::get(cpu::packedIndexShape(format, linear), byte)}};
  llvm::append_range(planes, getGroupPlanes(affine, shape));
  return planes;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// A panel from the planes `from` of `#hone.nm`.
void SparsePanels::packPanel(ArrayRef<int64_t> shape, int64_t panel, ArrayRef<ArrayRef<char>> from,
                             ArrayRef<MutableArrayRef<char>> to) const {
  int64_t first = panel * cpu::kPanelOutputs, count = std::min(cpu::kPanelOutputs, shape[0] - first);
  int64_t kept = shape[1] / kGroupInputs * kGroupKept;
  SmallVector<uint8_t> indices(count * kept), codes;
  for (int64_t row = 0; row < count; ++row)
    nm.loadIndices(from[1], shape[0], first + row, MutableArrayRef(indices).slice(row * kept, kept));
  const void *values = from[0].data() + first * (from[0].size() / shape[0]);
  if (affine) {
    codes.resize(count * kept);
    for (int64_t row = 0; row < count; ++row)
      affine.loadCodes(from[0], shape[0], first + row, MutableArrayRef(codes).slice(row * kept, kept));
    values = codes.data();
  }
  int64_t panelCount = llvm::divideCeil(shape[0], cpu::kPanelOutputs);
  auto part = [&](MutableArrayRef<char> plane) {
    int64_t bytes = plane.size() / panelCount;
    return asSpan(plane.slice(panel * bytes, bytes));
  };
  cpu::packSparseLinear(format, getLinearShape(affine, {count, shape[1]}), values, indices.data(), part(to[0]),
                        part(to[1]));
}

bool SparsePanels::repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
                          ArrayRef<MutableArrayRef<char>> arrays) const {
  if (source != nm) {
    SmallVector<SmallVector<char, 0>> kept;
    for (const EncodingPlane &plane : nm.getPlanes(shape, Float32Type::get(nm.getContext())))
      kept.emplace_back().resize(getDenseBytes(plane.type).value_or(0));
    return nm.repack(shape, source, from, SmallVector<MutableArrayRef<char>>(kept.begin(), kept.end())) &&
           repack(shape, nm, SmallVector<ArrayRef<char>>(kept.begin(), kept.end()), arrays);
  }
  llvm::parallelFor(0, llvm::divideCeil(shape[0], cpu::kPanelOutputs),
                    [&](int64_t panel) { packPanel(shape, panel, from, arrays); });
  if (affine) {
    // Scales and zero points follow the values where all inputs are kept.
    packGroups(affine, shape, from.drop_front(), arrays.drop_front());
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

void SparsePanels::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> arrays,
                          MutableArrayRef<char> dense) const {
  cpu::LinearShape linear = getLinearShape(affine, shape);
  PlainElements to(elementType);
  for (int64_t i = 0; i < shape[0] * shape[1]; ++i)
    to.store(dense, i, 0);
  std::optional<PackedScales> scales;
  if (affine)
    scales.emplace(affine, shape, arrays.drop_front(2));
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t e = 0; e < shape[1] / kGroupInputs * kGroupKept; ++e) {
      cpu::KeptPlace place = cpu::placeOfKept(format, linear, n, e / kGroupKept, e % kGroupKept);
      int64_t index = static_cast<uint8_t>(arrays[1][place.index]) >> place.indexShift & 3;
      int64_t column = e / kGroupKept * kGroupInputs + index;
      auto byte = static_cast<uint8_t>(arrays[0][place.value]);
      float element = 0;
      if (!scales)
        element = PlainElements(cast<TypeAttr>(nm.getOf()).getValue()).load(arrays[0].drop_front(place.value), 0);
      else
        element = scales->apply(format == cpu::PackedFormat::U4 ? byte >> place.valueShift & 0xf : byte, n, column);
      to.store(dense, n * shape[1] + column, element);
    }
}

/// What cpu::placeOfKept says, in IR.
namespace {
struct KeptPlaces {
  IndexBuilder b;
  cpu::PackedFormat format;
  Value output, column;

  bool areCodes() const { return format == cpu::PackedFormat::U8 || format == cpu::PackedFormat::U4; }
  Value panel() { return b.divide(output, cpu::kPanelOutputs); }
  Value lane() { return b.remainder(output, cpu::kPanelOutputs); }
  /// Which of the four bytes of eight inputs.
  Value byte(int64_t kept) { return b.add(b.multiply(b.remainder(b.divide(column, 4), 2), 2), b.constant(kept)); }

  Value value(Value plane, int64_t kept) {
    int64_t inputs = format == cpu::PackedFormat::U4 ? 16 : format == cpu::PackedFormat::U8 ? 8 : 4;
    Value step = b.divide(column, inputs);
    if (format == cpu::PackedFormat::Bf16)
      return b.extract(plane, {panel(), step, lane(), b.constant(kept)});
    if (!areCodes())
      return b.extract(plane, {panel(), step, b.constant(kept), lane()});
    Value code = b.extract(plane, {panel(), step, lane(), byte(kept)});
    return format == cpu::PackedFormat::U4 ? b.half(code, b.divide(b.remainder(column, 16), 8)) : code;
  }

  /// The byte that has the index of a kept element, and how far up in it.
  std::pair<Value, Value> index(Value plane, int64_t kept) {
    Value word = b.divide(column, 32), inside = b.remainder(column, 32);
    Value at = areCodes() ? byte(kept) : b.add(b.divide(inside, 16), b.constant(2 * kept));
    Value shift = areCodes() ? b.divide(inside, 8) : b.remainder(b.divide(inside, 4), 4);
    return {b.extract(plane, {panel(), word, lane(), at}), b.multiply(shift, 2)};
  }
};
} // namespace

Value SparsePanels::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange arrays,
                                 ValueRange indices) const {
  IndexBuilder b(builder, loc);
  KeptPlaces places{b, format, indices[0], indices[1]};
  Value wanted = b.remainder(indices[1], kGroupInputs);
  Value element = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(elementType, 0.0));
  for (int64_t kept = 0; kept < kGroupKept; ++kept) {
    auto [byte, shift] = places.index(arrays[1], kept);
    Value index = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), byte);
    index = b.remainder(arith::ShRUIOp::create(builder, loc, index, shift), 4);
    Value isIt = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, index, wanted);
    Value value = places.value(arrays[0], kept);
    if (affine)
      value = buildScaled(builder, loc, affine, value, arrays.drop_front(2), indices);
    if (value.getType() != elementType)
      value = arith::ExtFOp::create(builder, loc, elementType, value);
    element = arith::SelectOp::create(builder, loc, isIt, value, element);
  }
  return element;
}

} // namespace hone::hrt
