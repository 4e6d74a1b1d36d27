// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-quantize-weights: matrices of f32 stored as integers, where only operations read them that take encodings.
// What is rounded to nearest is so when it is written; what needs statistics is rounded here.

#include "hone/Compress/Rounding.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Transforms/MeasuredInputs.h"
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

  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override;

private:
  LogicalResult checkMethod(MLIRContext *context) const;
  FailureOr<std::string> quantize(ParamOp param, ArrayRef<GetParamOp> reads, MeasuredInputs &inputs) const;
  FailureOr<compress::AffineWeight> round(ParamOp param, const compress::Weight &weight, bool hasFeedback,
                                          MeasuredInputs &inputs) const;

  AffineAttr encoding;
};
} // namespace

LogicalResult QuantizeWeights::checkMethod(MLIRContext *context) const {
  auto error = [&] { return emitError(UnknownLoc::get(context)); };
  if (method != "rtn" && method != "gptq")
    return error() << "unsupported method '" << method << "' to quantize; supported: gptq, rtn";
  if (method == "gptq" && statistics.empty())
    return error() << "expected a file of statistics for method 'gptq'";
  if (method == "rtn" && (actOrder || staticGroups))
    return error() << "expected method 'gptq' for act-order and static-groups, but got 'rtn'";
  if (actOrder && !staticGroups && group != 0)
    return error() << "expected static-groups with act-order: the inputs of a group come one by one";
  return success();
}

LogicalResult QuantizeWeights::initialize(MLIRContext *context) {
  auto emit = [&] { return emitError(UnknownLoc::get(context)); };
  encoding = AffineAttr::getChecked(llvm::function_ref<InFlightDiagnostic()>(emit), context, bits.getValue(),
                                    group.getValue(), FloatType(Float16Type::get(context)), asymmetric.getValue(),
                                    /*isSigned=*/false,
                                    /*transposed=*/false, activations.getValue(), /*atLeast=*/activations != 0);
  return success(encoding && succeeded(checkMethod(context)));
}

static bool isTable(ArrayRef<GetParamOp> reads) {
  return llvm::any_of(reads,
                      [](GetParamOp read) { return llvm::any_of(read->getUsers(), llvm::IsaPred<EmbeddingOp>); });
}

/// `rounded` as the storage of a parameter of `type`.
static Attribute makeStorage(const compress::AffineWeight &rounded, RankedTensorType type) {
  SmallVector<EncodingPlane> planes = getPlanes(type);
  SmallVector<SmallVector<char, 0>> bytes;
  for (const EncodingPlane &plane : planes)
    bytes.emplace_back().resize_for_overwrite(getDenseBytes(plane.type).value_or(0));
  SmallVector<MutableArrayRef<char>> buffers(bytes.begin(), bytes.end());
  cast<AffineAttr>(type.getEncoding()).packLevels(type.getShape(), rounded.levels, rounded.scales, buffers);
  SmallVector<NamedAttribute> entries;
  for (auto [plane, buffer] : llvm::zip_equal(planes, buffers))
    entries.emplace_back(StringAttr::get(type.getContext(), plane.name), makeResource(plane.type, buffer));
  return DictionaryAttr::get(type.getContext(), entries);
}

FailureOr<compress::AffineWeight> QuantizeWeights::round(ParamOp param, const compress::Weight &weight,
                                                         bool hasFeedback, MeasuredInputs &inputs) const {
  compress::AffineFormat format = encoding.getFormat();
  const compress::InverseFactor *factor = nullptr;
  if (hasFeedback) {
    FailureOr<const compress::InverseFactor *> found = inputs.getFactor(param, actOrder);
    if (failed(found))
      return failure();
    factor = *found;
  }
  auto rounded = factor ? compress::roundWithFeedback(weight, format, *factor, staticGroups)
                        : compress::roundToNearest(weight, format);
  if (!rounded.ok())
    return param.emitError() << std::string(rounded.status().message());
  compress::writeValues(*rounded, format, weight);
  return std::move(*rounded);
}

FailureOr<std::string> QuantizeWeights::quantize(ParamOp param, ArrayRef<GetParamOp> reads,
                                                 MeasuredInputs &inputs) const {
  std::string what = ("is stored in " + Twine(bits.getValue()) + " bits an element").str();
  bool hasFeedback = method == "gptq" && inputs.has(param) && !isTable(reads);
  if (!inputs.has(param)) {
    changeEncoding(param, reads, encoding);
    return method == "gptq" ? what + ", rounded to nearest: nothing was measured of its inputs" : what;
  }
  FailureOr<std::vector<float>> before = readElements(param);
  if (failed(before) || failed(checkFinite(param, *before)))
    return failure();
  std::vector<float> elements = *before;
  FailureOr<compress::AffineWeight> rounded = round(param, asWeight(param, elements), hasFeedback, inputs);
  if (failed(rounded))
    return failure();
  FailureOr<std::string> error = inputs.describeError(param, *before, elements);
  if (failed(error))
    return failure();
  changeEncoding(param, reads, encoding);
  if (hasFeedback)
    param.setStorageAttr(makeStorage(*rounded, param.getTensorType()));
  else if (method == "gptq")
    what += ", rounded to nearest: an embedding reads it";
  return what + ", " + *error;
}

void QuantizeWeights::runOnOperation() {
  FailureOr<MeasuredInputs> inputs = MeasuredInputs::open(statistics, getOperation());
  if (failed(inputs) || (!statistics.empty() && failed(keepFingerprint(getOperation()))))
    return signalPassFailure();
  auto change = [&](ParamOp param, ArrayRef<GetParamOp> reads) { return quantize(param, reads, *inputs); };
  auto quantized = changeParameters(
      getOperation(), {"hone-quantize-weights", "Quantized", "stays as it is", getObstacleToEncoding, change});
  if (failed(quantized))
    return signalPassFailure();
  numQuantized += *quantized;
}

} // namespace hone
