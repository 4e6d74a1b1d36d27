// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-convert-weights: matrices of f32 stored in 16 bits, where only operations read them that take encodings.

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"

namespace hone {
#define GEN_PASS_DEF_CONVERTWEIGHTS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

namespace {
struct ConvertWeights : impl::ConvertWeightsBase<ConvertWeights> {
  using ConvertWeightsBase::ConvertWeightsBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (type == "f16")
      elements = Float16Type::get(context);
    else if (type == "bf16")
      elements = BFloat16Type::get(context);
    else
      return emitError(UnknownLoc::get(context))
             << "unsupported type '" << type << "' to store weights in; supported: bf16, f16";
    return success();
  }

  void runOnOperation() override {
    auto options = remark::RemarkOpts::name("Converted").category("hone-convert-weights");
    for (auto &[op, reads] : findReads(getOperation())) {
      auto param = cast<ParamOp>(op);
      StringRef obstacle = getObstacleToEncoding(param, reads);
      if (!obstacle.empty()) {
        remark::missed(param.getLoc(), options) << (param.getSymName() + " stays as it is: " + obstacle).str();
        continue;
      }
      auto stored = dyn_cast_or_null<StoredAttr>(param.getTensorType().getEncoding());
      changeEncoding(param, reads, StoredAttr::get(elements, stored && stored.getTransposed()));
      ++numConverted;
      remark::passed(param.getLoc(), options) << (param.getSymName() + " is stored as " + type).str();
    }
  }

private:
  FloatType elements;
};
} // namespace

} // namespace hone
