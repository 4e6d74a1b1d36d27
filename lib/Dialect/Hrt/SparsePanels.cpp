// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hrt.panels<#hone.nm<2:4, of = type>>: the layout of runtime/cpu/packing/pack_sparse.h.

#include "Panels.h"

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/PlainElements.h"

#include "cpu/packing/layout.h"
#include "cpu/packing/pack_sparse.h"

#include "llvm/Support/Parallel.h"

using namespace mlir;

namespace hone::hrt {

static constexpr int64_t kGroupInputs = 4, kGroupKept = 2;

SmallVector<EncodingPlane> getSparsePlanes(PanelsAttr panels, ArrayRef<int64_t> shape, FloatType type) {
  cpu::PackedFormat format = getFormat(panels);
  cpu::LinearShape linear = getLinearShape(panels, shape);
  auto byte = IntegerType::get(panels.getContext(), 8);
  return {{"values", RankedTensorType::get(cpu::packedSparseShape(format, linear), type)},
          {"indices", RankedTensorType::get(cpu::packedIndexShape(linear), byte)}};
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// A panel from the planes `from` of `#hone.nm`.
static void packPanel(PanelsAttr panels, ArrayRef<int64_t> shape, int64_t panel, ArrayRef<ArrayRef<char>> from,
                      ArrayRef<MutableArrayRef<char>> to) {
  int64_t first = panel * cpu::kPanelOutputs, count = std::min(cpu::kPanelOutputs, shape[0] - first);
  int64_t kept = shape[1] / kGroupInputs * kGroupKept;
  SmallVector<uint8_t> indices(count * kept);
  for (int64_t row = 0; row < count; ++row)
    panels.getNm().loadIndices(from[1], shape[0], first + row, MutableArrayRef(indices).slice(row * kept, kept));
  int64_t panelCount = llvm::divideCeil(shape[0], cpu::kPanelOutputs);
  auto part = [&](MutableArrayRef<char> plane) {
    int64_t bytes = plane.size() / panelCount;
    return asSpan(plane.slice(panel * bytes, bytes));
  };
  cpu::packSparseLinear(getFormat(panels), getLinearShape(panels, {count, shape[1]}),
                        from[0].data() + first * (from[0].size() / shape[0]), indices.data(), part(to[0]), part(to[1]));
}

bool repackSparse(PanelsAttr panels, ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
                  ArrayRef<MutableArrayRef<char>> planes) {
  NmAttr nm = panels.getNm();
  if (source != nm) {
    SmallVector<SmallVector<char, 0>> kept;
    for (const EncodingPlane &plane : nm.getPlanes(shape, Float32Type::get(panels.getContext())))
      kept.emplace_back().resize(getDenseBytes(plane.type).value_or(0));
    return nm.repack(shape, source, from, SmallVector<MutableArrayRef<char>>(kept.begin(), kept.end())) &&
           repackSparse(panels, shape, nm, SmallVector<ArrayRef<char>>(kept.begin(), kept.end()), planes);
  }
  llvm::parallelFor(0, llvm::divideCeil(shape[0], cpu::kPanelOutputs),
                    [&](int64_t panel) { packPanel(panels, shape, panel, from, planes); });
  return true;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

void unpackSparse(PanelsAttr panels, ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                  MutableArrayRef<char> dense) {
  cpu::PackedFormat format = getFormat(panels);
  cpu::LinearShape linear = getLinearShape(panels, shape);
  PlainElements from(cast<TypeAttr>(panels.getNm().getOf()).getValue()), to(elementType);
  for (int64_t i = 0; i < shape[0] * shape[1]; ++i)
    to.store(dense, i, 0);
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t e = 0; e < shape[1] / kGroupInputs * kGroupKept; ++e) {
      cpu::KeptPlace place = cpu::placeOfKept(format, linear, n, e / kGroupKept, e % kGroupKept);
      int64_t index = static_cast<uint8_t>(planes[1][place.index]) >> place.indexShift & 3;
      int64_t column = e / kGroupKept * kGroupInputs + index;
      to.store(dense, n * shape[1] + column, from.load(planes[0].drop_front(place.value), 0));
    }
}

/// What cpu::placeOfKept says of kept element `kept`, in IR: its value, and its index.
static std::pair<Value, Value> buildKept(OpBuilder &builder, Location loc, PanelsAttr panels, ValueRange planes,
                                         ValueRange indices, int64_t kept) {
  IndexBuilder b(builder, loc);
  Value panel = b.divide(indices[0], cpu::kPanelOutputs), lane = b.remainder(indices[0], cpu::kPanelOutputs);
  Value step = b.divide(indices[1], kGroupInputs), inside = b.remainder(indices[1], cpu::kIndexInputs);
  SmallVector<Value> at{panel, step, b.constant(kept), lane};
  if (getFormat(panels) == cpu::PackedFormat::Bf16)
    std::swap(at[2], at[3]);
  // Two bytes for eight groups, of which a byte has four.
  Value byteAt = b.add(b.divide(inside, 4 * kGroupInputs), b.constant(2 * kept));
  Value byte = b.extract(planes[1], {panel, b.divide(indices[1], cpu::kIndexInputs), lane, byteAt});
  byte = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), byte);
  Value shift = b.multiply(b.remainder(b.divide(inside, kGroupInputs), 4), 2);
  Value index = b.remainder(arith::ShRUIOp::create(builder, loc, byte, shift), kGroupInputs);
  return {b.extract(planes[0], at), index};
}

Value buildSparseElement(OpBuilder &builder, Location loc, PanelsAttr panels, Type elementType, ValueRange planes,
                         ValueRange indices) {
  IndexBuilder b(builder, loc);
  Value wanted = b.remainder(indices[1], kGroupInputs);
  Value element = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(elementType, 0.0));
  for (int64_t kept = 0; kept < kGroupKept; ++kept) {
    auto [value, index] = buildKept(builder, loc, panels, planes, indices, kept);
    Value isIt = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, index, wanted);
    if (value.getType() != elementType)
      value = arith::ExtFOp::create(builder, loc, elementType, value);
    element = arith::SelectOp::create(builder, loc, isIt, value, element);
  }
  return element;
}

} // namespace hone::hrt
