// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-quantize-weights: matrices of f32 stored as integers, where only operations read them that take encodings.
// What is rounded to nearest by its largest elements is so when it is written; all else is rounded here.

#include "hone/Compress/Refinement.h"
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
  AffineAttr getEncoding(ParamOp param) const;
  FailureOr<std::string> quantize(ParamOp param, ArrayRef<GetParamOp> reads, MeasuredInputs &inputs) const;
  FailureOr<std::vector<float>> getImportance(ParamOp param, bool isTable, MeasuredInputs &inputs) const;
  FailureOr<compress::AffineWeight> roundToNearest(ParamOp param, const compress::Weight &weight, bool isTable,
                                                   MeasuredInputs &inputs) const;
  FailureOr<compress::AffineWeight> roundWithFeedback(ParamOp param, const compress::Weight &weight,
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
  if (scales != "absmax" && scales != "mse")
    return error() << "unsupported choice of scales '" << scales << "'; supported: absmax, mse";
  if (refinements < 0 || (refinements > 0 && method != "gptq"))
    return error() << "expected 0 or more refinements, of method 'gptq', but got " << refinements.getValue() << " of '"
                   << method << "'";
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

static bool isTableOf(ArrayRef<GetParamOp> reads) {
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

/// The form that was chosen for `param`, if one was.
AffineAttr QuantizeWeights::getEncoding(ParamOp param) const {
  auto chosen = param->getAttrOfType<AffineAttr>(kEncodingAttr);
  return chosen ? chosen : encoding;
}

FailureOr<std::vector<float>> QuantizeWeights::getImportance(ParamOp param, bool isTable,
                                                             MeasuredInputs &inputs) const {
  if (scales == "absmax")
    return std::vector<float>();
  std::vector<float> importance(param.getTensorType().getDimSize(1), 1.0f);
  if (isTable || !inputs.has(param))
    return importance;
  FailureOr<compress::SecondMoment> moment = inputs.getMoment(param);
  if (failed(moment))
    return failure();
  for (auto [i, element] : llvm::enumerate(importance))
    element = moment->diagonal(i);
  return importance;
}

FailureOr<compress::AffineWeight> QuantizeWeights::roundToNearest(ParamOp param, const compress::Weight &weight,
                                                                  bool isTable, MeasuredInputs &inputs) const {
  FailureOr<std::vector<float>> importance = getImportance(param, isTable, inputs);
  if (failed(importance))
    return failure();
  auto rounded = compress::roundToNearest(weight, getEncoding(param).getFormat(), *importance);
  if (!rounded.ok())
    return param.emitError() << std::string(rounded.status().message());
  return std::move(*rounded);
}

FailureOr<compress::AffineWeight> QuantizeWeights::roundWithFeedback(ParamOp param, const compress::Weight &weight,
                                                                     MeasuredInputs &inputs) const {
  FailureOr<const compress::InverseFactor *> factor = inputs.getFactor(param, actOrder);
  FailureOr<compress::SecondMoment> moment = inputs.getMoment(param);
  if (failed(factor) || failed(moment))
    return failure();
  compress::AffineFormat format = getEncoding(param).getFormat();
  std::vector<float> settled(weight.elements.begin(), weight.elements.end());
  auto rounded = compress::roundWithFeedback({settled, weight.rows, weight.columns}, format, **factor, staticGroups,
                                             /*searchesScales=*/scales == "mse");
  absl::Status status = rounded.status();
  if (status.ok() && refinements > 0)
    status = compress::refine(weight, format, *moment, refinements, *rounded);
  if (!status.ok())
    return param.emitError() << std::string(status.message());
  return std::move(*rounded);
}

FailureOr<std::string> QuantizeWeights::quantize(ParamOp param, ArrayRef<GetParamOp> reads,
                                                 MeasuredInputs &inputs) const {
  AffineAttr encoding = getEncoding(param);
  std::string what = ("is stored in " + Twine(encoding.getBits()) + " bits an element").str();
  bool isTable = isTableOf(reads), hasFeedback = method == "gptq" && inputs.has(param) && !isTable;
  if (method == "gptq" && !hasFeedback)
    what += isTable ? ", rounded to nearest: an embedding reads it"
                    : ", rounded to nearest: nothing was measured of its inputs";
  if (!inputs.has(param) && scales == "absmax") { // which is what writing it does
    changeEncoding(param, reads, encoding);
    return what;
  }
  FailureOr<std::vector<float>> before = readElements(param);
  if (failed(before) || failed(checkFinite(param, *before)))
    return failure();
  compress::Weight weight = asWeight(param, *before);
  FailureOr<compress::AffineWeight> rounded =
      hasFeedback ? roundWithFeedback(param, weight, inputs) : roundToNearest(param, weight, isTable, inputs);
  if (failed(rounded))
    return failure();
  if (inputs.has(param)) {
    std::vector<float> after(before->size());
    compress::writeValues(*rounded, encoding.getFormat(), asWeight(param, after));
    FailureOr<std::string> error = inputs.describeError(param, *before, after);
    if (failed(error))
      return failure();
    what += ", " + *error;
  }
  changeEncoding(param, reads, encoding);
  param.setStorageAttr(makeStorage(*rounded, param.getTensorType()));
  return what;
}

void QuantizeWeights::runOnOperation() {
  FailureOr<MeasuredInputs> inputs = MeasuredInputs::open(statistics, getOperation());
  if (failed(inputs) || (!statistics.empty() && failed(keepFingerprint(getOperation()))))
    return signalPassFailure();
  auto change = [&](ParamOp param, ArrayRef<GetParamOp> reads) {
    FailureOr<std::string> what = quantize(param, reads, *inputs);
    param->removeAttr(kEncodingAttr);
    return what;
  };
  auto quantized = changeParameters(
      getOperation(), {"hone-quantize-weights", "Quantized", "stays as it is", getObstacleToEncoding, change});
  if (failed(quantized))
    return signalPassFailure();
  numQuantized += *quantized;
}

} // namespace hone
