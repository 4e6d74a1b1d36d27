// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hrt.panels<#hone.codebook<…>>: the layout of include/hone/cpu/packing/pack_codebook.h.

#include "Panels.h"

#include "hone/Dialect/Hone/PlainElements.h"
#include "hone/cpu/packing/pack_codebook.h"

#include "llvm/Support/Parallel.h"

using namespace mlir;

namespace hone::hrt {

static cpu::LinearShape getShape(ArrayRef<int64_t> shape) { return {shape[0], shape[1]}; }

namespace {
class CodebookPanels : public PanelLayout {
public:
  explicit CodebookPanels(CodebookAttr codebook) : codebook(codebook) {}

  SmallVector<EncodingPlane> getArrays(ArrayRef<int64_t> shape) const override;
  bool repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
              ArrayRef<MutableArrayRef<char>> arrays) const override;
  void unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> arrays,
              MutableArrayRef<char> dense) const override;
  Value buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange arrays,
                     ValueRange indices) const override;
  std::string getKernelSuffix() const override { return "codebook.u" + std::to_string(codebook.getBits()); }

private:
  CodebookAttr codebook;
};
} // namespace

std::unique_ptr<PanelLayout> makeCodebookPanels(Attribute elements) {
  auto codebook = dyn_cast<CodebookAttr>(elements);
  if (!codebook || !codebook.getValues().isBF16()) // which products multiply in pairs
    return nullptr;
  return std::make_unique<CodebookPanels>(codebook);
}

SmallVector<EncodingPlane> CodebookPanels::getArrays(ArrayRef<int64_t> shape) const {
  Type byte = IntegerType::get(codebook.getContext(), 8);
  int64_t bits = codebook.getBits();
  return {{"indices", RankedTensorType::get(cpu::packedIndexPlane(bits, getShape(shape)), byte)},
          {"tables", RankedTensorType::get(cpu::packedTablePlane(bits, getShape(shape)), byte)}};
}

bool CodebookPanels::repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
                            ArrayRef<MutableArrayRef<char>> arrays) const {
  if (source != codebook)
    return false;
  int64_t rows = shape[0], columns = shape[1], panels = llvm::divideCeil(rows, cpu::kPanelOutputs);
  llvm::parallelFor(0, panels, [&](int64_t panel) {
    int64_t first = panel * cpu::kPanelOutputs, count = std::min(cpu::kPanelOutputs, rows - first);
    SmallVector<uint8_t> indices(count * columns);
    for (int64_t row = 0; row < count; ++row)
      codebook.loadIndices(from[0], rows, first + row, MutableArrayRef(indices).slice(row * columns, columns));
    SmallVector<uint16_t> centroids(count * codebook.getEntries());
    std::memcpy(centroids.data(), from[1].data() + first * codebook.getEntries() * sizeof(uint16_t),
                centroids.size() * sizeof(uint16_t));
    auto part = [&](MutableArrayRef<char> plane) {
      int64_t bytes = plane.size() / panels;
      return asSpan(plane.slice(panel * bytes, bytes));
    };
    cpu::LinearShape some{count, columns};
    cpu::packCodebookIndices(codebook.getBits(), some, indices.data(), part(arrays[0]));
    cpu::packCodebookTables(codebook.getBits(), some, centroids.data(), part(arrays[1]));
  });
  return true;
}

void CodebookPanels::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> arrays,
                            MutableArrayRef<char> dense) const {
  PlainElements centroids(codebook.getValues()), to(elementType);
  auto bytes = [](ArrayRef<char> plane) {
    return std::span(reinterpret_cast<const uint8_t *>(plane.data()), plane.size());
  };
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t k = 0; k < shape[1]; ++k) {
      uint16_t centroid =
          cpu::loadCodebookNumber(codebook.getBits(), getShape(shape), bytes(arrays[0]), bytes(arrays[1]), n, k);
      ArrayRef<char> view(reinterpret_cast<const char *>(&centroid), sizeof(centroid));
      to.store(dense, n * shape[1] + k, centroids.load(view, 0));
    }
}

/// What cpu::loadCodebookNumber says, in IR.
Value CodebookPanels::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange arrays,
                                   ValueRange indices) const {
  IndexBuilder b(builder, loc);
  const cpu::BitLayout &layout = cpu::indexLayoutOf(codebook.getBits());
  Value panel = b.divide(indices[0], cpu::kPanelOutputs), output = b.remainder(indices[0], cpu::kPanelOutputs);
  Value quarter = b.remainder(output, cpu::kQuarterOutputs), lane = b.divide(output, cpu::kQuarterOutputs);
  Value half = b.divide(b.remainder(indices[1], cpu::kCodebookInputs), cpu::kTableBytes);
  Value byte = b.remainder(indices[1], cpu::kTableBytes), sixteen = b.add(b.multiply(quarter, 2), half);
  Value first = b.add(b.multiply(b.divide(indices[1], cpu::kCodebookInputs), cpu::indexLinesOf(layout)),
                      b.multiply(b.divide(sixteen, layout.quads), layout.lines));
  Value index = b.code(layout, b.remainder(sixteen, layout.quads),
                       [&](Value line) { return b.extract(arrays[0], {panel, b.add(first, line), lane, byte}); });
  index = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), index);
  int64_t registers = cpu::tableRegistersOf(layout);
  Value table = b.multiply(quarter, registers), high = index;
  Value low = b.extract(arrays[1], {panel, table, lane, index});
  if (registers == 1)
    high = b.add(index, b.constant(cpu::kTableBytes / 2));
  high = b.extract(arrays[1], {panel, b.add(table, b.constant(registers - 1)), lane, high});
  Type word = builder.getI16Type();
  Value eight = arith::ConstantOp::create(builder, loc, builder.getI16IntegerAttr(8));
  high = arith::ShLIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, word, high), eight);
  Value centroid = arith::OrIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, word, low), high);
  centroid = arith::BitcastOp::create(builder, loc, codebook.getValues(), centroid);
  return elementType == centroid.getType() ? centroid : arith::ExtFOp::create(builder, loc, elementType, centroid);
}

} // namespace hone::hrt
