// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hrt.panels<#hone.e5m2>: [panel][input][16 outputs] bytes.

#include "Panels.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace hone::hrt {
namespace {

class E5m2Panels : public PanelLayout {
public:
  explicit E5m2Panels(E5m2Attr encoding) : encoding(encoding) {}

  SmallVector<EncodingPlane> getArrays(ArrayRef<int64_t> shape) const override {
    int64_t panels = llvm::divideCeil(shape[0], cpu::kPanelOutputs);
    SmallVector<int64_t> sizes{panels, shape[1], cpu::kPanelOutputs, 1};
    return {{"values", RankedTensorType::get(sizes, IntegerType::get(encoding.getContext(), 8))}};
  }
  bool repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
              ArrayRef<MutableArrayRef<char>> arrays) const override {
    if (source != encoding)
      return false;
    llvm::fill(arrays[0], 0);
    forEachElement(shape, [&](int64_t element, int64_t place) { arrays[0][place] = from[0][element]; });
    return true;
  }
  void unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> arrays,
              MutableArrayRef<char> dense) const override {
    SmallVector<char> rows(shape[0] * shape[1]);
    forEachElement(shape, [&](int64_t element, int64_t place) { rows[element] = arrays[0][place]; });
    encoding.unpack(shape, elementType, {rows}, dense);
  }
  Value buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange arrays,
                     ValueRange indices) const override {
    IndexBuilder b(builder, loc);
    Value panel = b.divide(indices[0], cpu::kPanelOutputs), output = b.remainder(indices[0], cpu::kPanelOutputs);
    Value byte = b.extract(arrays[0], {panel, indices[1], output, b.constant(0)});
    Value alone = tensor::FromElementsOp::create(builder, loc, byte);
    Value zero = b.constant(0);
    auto row = RankedTensorType::get({1, 1}, byte.getType());
    alone = tensor::FromElementsOp::create(builder, loc, row, byte);
    return encoding.buildElement(builder, loc, elementType, alone, {zero, zero});
  }
  std::string getKernelSuffix() const override { return encoding.getKernelSuffix(); }

private:
  /// The index in rows, and that in panels, of each element.
  static void forEachElement(ArrayRef<int64_t> shape, llvm::function_ref<void(int64_t, int64_t)> body) {
    for (int64_t n = 0; n < shape[0]; ++n)
      for (int64_t k = 0; k < shape[1]; ++k)
        body(n * shape[1] + k,
             (n / cpu::kPanelOutputs * shape[1] + k) * cpu::kPanelOutputs + n % cpu::kPanelOutputs);
  }

  E5m2Attr encoding;
};

} // namespace

std::unique_ptr<PanelLayout> makeE5m2Panels(Attribute elements) {
  auto encoding = dyn_cast<E5m2Attr>(elements);
  return encoding ? std::make_unique<E5m2Panels>(encoding) : nullptr;
}

} // namespace hone::hrt
