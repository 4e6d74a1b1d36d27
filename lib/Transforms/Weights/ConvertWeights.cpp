// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-convert-weights: matrices of f32 stored in 16 bits, where only operations read them that take encodings.

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Transforms/Passes.h"

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
    elements = getHalfType(context, type, "store weights in");
    return success(elements != nullptr);
  }

  void runOnOperation() override {
    auto change = [&](ParamOp param, ArrayRef<GetParamOp> reads) {
      auto stored = dyn_cast_or_null<StoredAttr>(param.getTensorType().getEncoding());
      changeEncoding(param, reads, StoredAttr::get(elements, stored && stored.getTransposed()));
      return std::string("is stored as " + type.getValue());
    };
    auto converted = changeParameters(
        getOperation(), {"hone-convert-weights", "Converted", "stays as it is", getEncodingBlocker, change});
    numConverted += *converted; // no change fails
  }

private:
  FloatType elements;
};
} // namespace

} // namespace hone
