// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every plane begins at a cache line, as in the file that the writer of weights makes. Planes whose elements are addresses come last, next
// to each other: who loads an artefact checks them, and pages that hold nothing else are few.

#include "PlaceParameters.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace hone {

/// What io::SafetensorsWriter aligns tensors to.
static constexpr int64_t kAlignment = 64;

static SmallVector<ParamOp> keepWhatIsRead(ModuleOp module) {
  SymbolTable symbols(module);
  llvm::DenseSet<Operation *> read;
  module.walk([&](GetParamOp get) { read.insert(symbols.lookup(get.getName())); });
  for (auto state : module.getOps<StateOp>())
    for (SlotAttr slot : state.getSlots().getAsRange<SlotAttr>())
      if (FlatSymbolRefAttr beginning = slot.getBeginning())
        read.insert(symbols.lookup(beginning.getAttr()));
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
  SmallVector<SmallVector<int64_t>> offsets(params.size());
  int64_t end = 0;
  for (bool areAddresses : {false, true})
    for (auto [param, places] : llvm::zip_equal(params, offsets)) {
      SmallVector<EncodingPlane> planes = getPlanes(param.getTensorType());
      places.resize(planes.size());
      for (auto [plane, place] : llvm::zip_equal(planes, places)) {
        if (plane.addresses.has_value() != areAddresses)
          continue;
        place = llvm::alignTo(end, kAlignment);
        end = place + getDenseBytes(plane.type).value_or(0);
      }
    }
  for (auto [param, places] : llvm::zip_equal(params, offsets))
    param->setAttr(hrt::kOffsetsAttr, DenseI64ArrayAttr::get(module.getContext(), places));
  return params.size();
}

} // namespace hone
