// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-quantize-weights: matrices of f32 stored as integers, where only operations read them that take encodings.

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Transforms/Passes.h"

namespace hone {
#define GEN_PASS_DEF_QUANTIZEWEIGHTS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

namespace {
struct QuantizeWeights : impl::QuantizeWeightsBase<QuantizeWeights> {
  using QuantizeWeightsBase::QuantizeWeightsBase;

  LogicalResult initialize(MLIRContext *context) override {
    auto emit = [&] { return emitError(UnknownLoc::get(context)); };
    encoding = AffineAttr::getChecked(llvm::function_ref<InFlightDiagnostic()>(emit), context, bits.getValue(),
                                      group.getValue(), FloatType(Float16Type::get(context)), asymmetric.getValue(),
                                      /*isSigned=*/false,
                                      /*transposed=*/false, activations.getValue(), /*atLeast=*/activations != 0);
    return success(encoding != nullptr);
  }

  void runOnOperation() override {
    auto change = [&](ParamOp param, ArrayRef<GetParamOp> reads) {
      changeEncoding(param, reads, encoding);
      return ("is stored in " + Twine(bits.getValue()) + " bits an element").str();
    };
    numQuantized += changeParameters(
        getOperation(), {"hone-quantize-weights", "Quantized", "stays as it is", getObstacleToEncoding, change});
  }

private:
  AffineAttr encoding;
};
} // namespace

} // namespace hone
