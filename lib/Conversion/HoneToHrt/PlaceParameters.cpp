// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The weights file has no holes: first come planes that fill whole cache lines, then the others by falling element size, so
// that each is aligned for its elements.

#include "PlaceParameters.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace hone {

/// Planes begin at multiples of this where that costs no padding (a cache line).
static constexpr int64_t kAlignment = 64;

namespace {
/// One plane of a parameter, by its number among the parameters and in the parameter.
struct Plane {
  size_t param;
  size_t number;
  int64_t bytes, elementBytes;

  /// Planes are placed in rising order of this.
  auto rank() const {
    bool fillsLines = bytes % kAlignment == 0;
    return std::tuple(!fillsLines, fillsLines ? 0 : -elementBytes, param, number);
  }
};
} // namespace

static SmallVector<ParamOp> keepWhatIsRead(ModuleOp module) {
  SymbolTable symbols(module);
  llvm::DenseSet<Operation *> read;
  module.walk([&](GetParamOp get) { read.insert(symbols.lookup(get.getName())); });
  SmallVector<ParamOp> params;
  for (auto param : llvm::make_early_inc_range(module.getOps<ParamOp>())) {
    if (read.contains(param))
      params.push_back(param);
    else
      param.erase();
  }
  return params;
}

int64_t placeParameters(ModuleOp module) {
  SmallVector<ParamOp> params = keepWhatIsRead(module);
  SmallVector<Plane> planes;
  SmallVector<SmallVector<int64_t>> offsets(params.size());
  for (auto [i, param] : llvm::enumerate(params))
    for (const EncodingPlane &plane : getPlanes(param.getTensorType())) {
      planes.push_back(
          {i, offsets[i].size(), getDenseBytes(plane.type).value_or(0), getElementBytes(plane.type.getElementType())});
      offsets[i].push_back(0);
    }
  llvm::sort(planes, [](const Plane &a, const Plane &b) { return a.rank() < b.rank(); });
  int64_t end = 0;
  for (const Plane &plane : planes) {
    offsets[plane.param][plane.number] = end;
    end += plane.bytes;
  }
  for (auto [param, places] : llvm::zip_equal(params, offsets))
    param->setAttr(hrt::kOffsetsAttr, DenseI64ArrayAttr::get(module.getContext(), places));
  return params.size();
}

} // namespace hone
