// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every plane begins at a cache line, as in the file that the writer of weights makes.

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
  int64_t end = 0;
  for (ParamOp param : params) {
    SmallVector<int64_t> offsets;
    for (const EncodingPlane &plane : getPlanes(param.getTensorType())) {
      offsets.push_back(llvm::alignTo(end, kAlignment));
      end = offsets.back() + getDenseBytes(plane.type).value_or(0);
    }
    param->setAttr(hrt::kOffsetsAttr, DenseI64ArrayAttr::get(module.getContext(), offsets));
  }
  return params.size();
}

} // namespace hone
