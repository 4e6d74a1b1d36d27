// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-quantize-weights: matrices of f32 stored as integers or as indices, where only operations read them that take
// encodings.
// What is rounded to nearest by its largest elements is so when it is written; all else is rounded here.

#include "OutlierShare.h"
#include "RoundedWeight.h"

#include "hone/Compress/Refinement.h"
#include "hone/Compress/Sensitivities.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Transforms/MeasuredInputs.h"
#include "hone/Transforms/Passes.h"
#include "hone/Transforms/ReturnedProducts.h"

#include <memory>

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
  LogicalResult readShares(MLIRContext *context);
  LogicalResult checkNames(StringRef file, llvm::function_ref<bool(const std::string &)> has);
  LogicalResult checkFiles();
  bool hasCodebooks() const { return StringRef(method).starts_with("squeezellm"); }
  bool compensatesErrors() const { return method == "gptq" || method == "squeezellm-gptq"; }
  EncodingInterface makeEncoding(MLIRContext *context, int64_t codeBits, int64_t width) const;
  EncodingInterface getBase(ParamOp param) const { return getBaseOf(getEncoding(param)); }
  bool mayKeepOutliers(ArrayRef<GetParamOp> reads) const { return expertOutliers || countExperts(reads) == 0; }
  EncodingInterface getEncoding(ParamOp param, int64_t experts = 0, bool mayKeepOutliers = true) const;
  EncodingInterface getOutputEncoding(ParamOp param) const;
  FailureOr<std::string> quantize(ParamOp param, ArrayRef<GetParamOp> reads, MeasuredInputs &inputs);
  FailureOr<std::vector<float>> getImportance(const MeasuredWeight &measured, bool isTable,
                                              MeasuredInputs &inputs) const;
  FailureOr<std::vector<float>> getCosts(const MeasuredWeight &measured, bool isTable, bool compensatesErrors,
                                         MeasuredInputs &inputs) const;
  FailureOr<compress::Outliers> markOutliers(const MeasuredWeight &measured, const compress::Weight &weight,
                                             int64_t slots, bool isTable, bool compensatesErrors,
                                             MeasuredInputs &inputs) const;
  FailureOr<RoundedWeight> roundToNearest(const MeasuredWeight &measured, const compress::Weight &weight,
                                          const compress::Outliers &marks, bool isTable, MeasuredInputs &inputs) const;
  FailureOr<RoundedWeight> roundWithCompensation(const MeasuredWeight &measured, const compress::Weight &weight,
                                                 const compress::Outliers &marks, MeasuredInputs &inputs) const;
  FailureOr<compress::CodebookWeight> chooseCodebook(const MeasuredWeight &measured, const compress::Weight &weight,
                                                     const compress::Outliers &marks, bool isTable,
                                                     bool compensatesErrors, MeasuredInputs &inputs) const;
  FailureOr<RoundedWeight> roundToCodebook(const MeasuredWeight &measured, const compress::Weight &weight,
                                           const compress::Outliers &marks, bool isTable, bool compensatesErrors,
                                           MeasuredInputs &inputs) const;
  FailureOr<RoundedWeight> round(const MeasuredWeight &measured, const compress::Weight &weight, int64_t slots,
                                 bool isTable, MeasuredInputs &inputs) const;
  FailureOr<RoundedWeight> roundExperts(ParamOp param, const compress::Weight &weight, int64_t slots, int64_t experts,
                                        MeasuredInputs &inputs) const;

  EncodingInterface encoding, outputEncoding; // the second may be null
  OutlierShares shares;
  std::shared_ptr<const compress::Sensitivities> scores; // of all copies of the pass
};
} // namespace

LogicalResult QuantizeWeights::checkMethod(MLIRContext *context) const {
  auto error = [&] { return emitError(UnknownLoc::get(context)); };
  if (method != "rtn" && method != "gptq" && method != "squeezellm" && method != "squeezellm-gptq")
    return error() << "unsupported method '" << method
                   << "' to quantize; supported: gptq, rtn, squeezellm, squeezellm-gptq";
  if (compensatesErrors() && statistics.empty())
    return error() << "expected a file of statistics for method '" << method << "'";
  if (!compensatesErrors() && (actOrder || staticGroups))
    return error() << "expected method 'gptq' for act-order and static-groups, but got '" << method << "'";
  if (scales != "absmax" && scales != "mse")
    return error() << "unsupported choice of scales '" << scales << "'; supported: absmax, mse";
  if (refinements < 0 || (refinements > 0 && !compensatesErrors()))
    return error() << "expected 0 or more refinements, of method 'gptq', but got " << refinements.getValue() << " of '"
                   << method << "'";
  if (actOrder && !staticGroups && group != 0)
    return error() << "expected static-groups with act-order: the inputs of a group come one by one";
  if (outlierMethod != "magnitude" && outlierMethod != "sensitivity" && outlierMethod != "spqr")
    return error() << "unsupported method '" << outlierMethod
                   << "' to choose outliers; supported: magnitude, sensitivity, spqr";
  if (!outliers.empty() && outlierMethod == "sensitivity" && statistics.empty() && sensitivities.empty())
    return error() << "expected a file of statistics or of sensitivities for outlier-method 'sensitivity'";
  if (!outliers.empty() && outlierMethod == "spqr" && hasCodebooks())
    return error()
           << "unsupported method 'spqr' to choose outliers beside codebooks; supported: magnitude, sensitivity";
  if (outliers.empty() && !outlierShares.empty())
    return error() << "expected outliers with a file of their shares";
  if (!sensitivities.empty() && method != "squeezellm" && (outliers.empty() || outlierMethod != "sensitivity"))
    return error() << "expected outliers and outlier-method 'sensitivity' with a file of sensitivities";
  return success();
}

/// The shares of outliers, and the numbers that choose them.
LogicalResult QuantizeWeights::readShares(MLIRContext *context) {
  Location loc = UnknownLoc::get(context);
  FailureOr<OutlierShares> read = OutlierShares::read(outliers, outlierShares, loc);
  if (failed(read))
    return failure();
  shares = std::move(*read);
  if (sensitivities.empty())
    return success();
  auto opened = compress::Sensitivities::open(sensitivities);
  if (failed(report(loc, opened.status())))
    return failure();
  scores = std::make_shared<const compress::Sensitivities>(std::move(*opened));
  return success();
}

/// Codes of `codeBits` bits in groups of `width`, or indices of as many where the method has codebooks for them; null after an
/// error.
EncodingInterface QuantizeWeights::makeEncoding(MLIRContext *context, int64_t codeBits, int64_t width) const {
  auto emit = [&] { return emitError(UnknownLoc::get(context)); };
  llvm::function_ref<InFlightDiagnostic()> onError(emit);
  if (hasCodebooks() && (codeBits == bits || CodebookAttr::canHave(codeBits)))
    return CodebookAttr::getChecked(onError, context, codeBits, FloatType(BFloat16Type::get(context)));
  return AffineAttr::getChecked(onError, context, codeBits, width, FloatType(Float16Type::get(context)),
                                asymmetric.getValue(), /*isSigned=*/false, /*transposed=*/false, activations.getValue(),
                                /*atLeast=*/activations != 0);
}

LogicalResult QuantizeWeights::initialize(MLIRContext *context) {
  encoding = makeEncoding(context, bits, group);
  if (outputBits != 0)
    outputEncoding = makeEncoding(context, outputBits, outputBits == 8 ? int64_t(0) : group.getValue());
  bool isKnown = encoding && (outputBits == 0 || outputEncoding);
  return success(isKnown && succeeded(checkMethod(context)) && succeeded(readShares(context)));
}

/// The form that was chosen for `param`, or that of all; `experts` are how many are rounded separately.
EncodingInterface QuantizeWeights::getEncoding(ParamOp param, int64_t experts, bool mayKeepOutliers) const {
  if (auto chosen = param->getAttrOfType<EncodingInterface>(kEncodingAttr))
    return chosen;
  return withOutliers(encoding, param.getTensorType(), mayKeepOutliers ? shares.of(param.getSymName()) : 0.0,
                      std::max<int64_t>(experts, 1));
}

/// That of a weight whose products are returned. More bits than others have need no outliers.
EncodingInterface QuantizeWeights::getOutputEncoding(ParamOp param) const {
  return withOutliers(outputEncoding, param.getTensorType(), outputBits > bits ? 0.0 : shares.of(param.getSymName()));
}

FailureOr<std::vector<float>> QuantizeWeights::getImportance(const MeasuredWeight &measured, bool isTable,
                                                             MeasuredInputs &inputs) const {
  ParamOp param = measured.param;
  std::vector<float> importance(param.getTensorType().getDimSize(1), 1.0f);
  if (isTable || !inputs.has(measured))
    return importance;
  FailureOr<compress::Hessian> hessian = inputs.getHessian(measured);
  if (failed(hessian))
    return failure();
  for (auto [i, element] : llvm::enumerate(importance))
    element = hessian->diagonal(i);
  return importance;
}

/// What an error of each column costs: its importance, or with error compensation in the columns after it, what is left of that.
FailureOr<std::vector<float>> QuantizeWeights::getCosts(const MeasuredWeight &measured, bool isTable,
                                                        bool compensatesErrors, MeasuredInputs &inputs) const {
  if (!compensatesErrors)
    return getImportance(measured, isTable, inputs);
  FailureOr<const compress::InverseFactor *> factor = inputs.getFactor(measured, actOrder);
  if (failed(factor))
    return failure();
  std::vector<float> costs((*factor)->size());
  for (int64_t i = 0; i < (*factor)->size(); ++i)
    costs[(*factor)->column(i)] = static_cast<float>(1 / ((*factor)->diagonal(i) * (*factor)->diagonal(i)));
  return costs;
}

FailureOr<compress::Outliers> QuantizeWeights::markOutliers(const MeasuredWeight &measured,
                                                            const compress::Weight &weight, int64_t slots, bool isTable,
                                                            bool compensatesErrors, MeasuredInputs &inputs) const {
  ParamOp param = measured.param;
  if (slots == 0)
    return compress::Outliers();
  std::string name = measured.getName();
  if (outlierMethod == "spqr") {
    FailureOr<std::vector<float>> costs = getCosts(measured, isTable, compensatesErrors, inputs);
    if (failed(costs))
      return failure();
    return compress::markCostly(weight, cast<AffineAttr>(getBase(param)).getFormat(), *costs, slots);
  }
  if (scores && scores->has(name)) {
    auto read = scores->read(name, weight.rows, weight.columns);
    if (failed(report(param.getLoc(), read.status())))
      return failure();
    return compress::markHighest(*read, weight.columns, slots);
  }
  if (outlierMethod == "magnitude" || !inputs.has(measured))
    return compress::markLargest(weight, slots);
  FailureOr<compress::Hessian> hessian = inputs.getHessian(measured);
  if (failed(hessian))
    return failure();
  return compress::markSensitive(weight, *hessian, slots);
}

/// `weight` without its outliers, and those.
static FailureOr<compress::SparseWeight> detach(ParamOp param, const compress::Weight &weight,
                                                const compress::Outliers &marks) {
  if (marks.empty())
    return compress::SparseWeight();
  auto sparse = compress::detach(weight, marks);
  if (failed(report(param.getLoc(), sparse.status())))
    return failure();
  return std::move(*sparse);
}

FailureOr<RoundedWeight> QuantizeWeights::roundToNearest(const MeasuredWeight &measured, const compress::Weight &weight,
                                                         const compress::Outliers &marks, bool isTable,
                                                         MeasuredInputs &inputs) const {
  ParamOp param = measured.param;
  FailureOr<std::vector<float>> importance = std::vector<float>();
  if (scales == "mse")
    importance = getImportance(measured, isTable, inputs);
  if (failed(importance))
    return failure();
  std::vector<float> others(weight.elements.begin(), weight.elements.end());
  compress::Weight rest{others, weight.rows, weight.columns};
  FailureOr<compress::SparseWeight> sparse = detach(param, rest, marks);
  if (failed(sparse))
    return failure();
  auto rounded = compress::roundToNearest(rest, cast<AffineAttr>(getBase(param)).getFormat(), *importance);
  if (!rounded.ok())
    return param.emitError() << std::string(rounded.status().message());
  return RoundedWeight{std::move(*rounded), std::move(*sparse)};
}

FailureOr<RoundedWeight> QuantizeWeights::roundWithCompensation(const MeasuredWeight &measured,
                                                                const compress::Weight &weight,
                                                                const compress::Outliers &marks,
                                                                MeasuredInputs &inputs) const {
  ParamOp param = measured.param;
  FailureOr<const compress::InverseFactor *> factor = inputs.getFactor(measured, actOrder);
  if (failed(factor))
    return failure();
  FailureOr<compress::Hessian> hessian = inputs.getHessian(measured);
  if (failed(hessian))
    return failure();
  compress::AffineFormat format = cast<AffineAttr>(getBase(param)).getFormat();
  std::vector<float> compensated(weight.elements.begin(), weight.elements.end());
  compress::Weight after{compensated, weight.rows, weight.columns};
  auto rounded = compress::roundWithCompensation(after, format, **factor, staticGroups,
                                                 /*searchesScales=*/scales == "mse", marks);
  if (!rounded.ok())
    return param.emitError() << std::string(rounded.status().message());
  FailureOr<compress::SparseWeight> sparse = detach(param, after, marks);
  if (failed(sparse))
    return failure();
  if (refinements > 0 &&
      failed(report(param.getLoc(), compress::refine(weight, format, *hessian, refinements, *rounded, &*sparse))))
    return failure();
  return RoundedWeight{std::move(*rounded), std::move(*sparse)};
}

/// Indices into numbers that count errors as the method does. `weight` becomes what they mean, and outliers what they are to be.
FailureOr<compress::CodebookWeight> QuantizeWeights::chooseCodebook(const MeasuredWeight &measured,
                                                                    const compress::Weight &weight,
                                                                    const compress::Outliers &marks, bool isTable,
                                                                    bool compensatesErrors,
                                                                    MeasuredInputs &inputs) const {
  ParamOp param = measured.param;
  compress::CodebookFormat format = cast<CodebookAttr>(getBase(param)).getFormat();
  auto check = [&](absl::StatusOr<compress::CodebookWeight> rounded) -> FailureOr<compress::CodebookWeight> {
    if (!rounded.ok())
      return param.emitError() << std::string(rounded.status().message());
    return std::move(*rounded);
  };
  if (compensatesErrors) {
    FailureOr<const compress::InverseFactor *> factor = inputs.getFactor(measured, actOrder);
    if (failed(factor))
      return failure();
    return check(compress::roundToCodebookWithCompensation(weight, format, **factor, marks));
  }
  std::string name = measured.getName();
  if (!isTable && scores && scores->has(name)) {
    auto read = scores->read(name, weight.rows, weight.columns);
    if (failed(report(param.getLoc(), read.status())))
      return failure();
    return check(compress::roundToCodebook(weight, format, *read, marks));
  }
  FailureOr<std::vector<float>> importance = getImportance(measured, isTable, inputs);
  if (failed(importance))
    return failure();
  return check(compress::roundToCodebook(weight, format, *importance, marks));
}

FailureOr<RoundedWeight> QuantizeWeights::roundToCodebook(const MeasuredWeight &measured,
                                                          const compress::Weight &weight,
                                                          const compress::Outliers &marks, bool isTable,
                                                          bool compensatesErrors, MeasuredInputs &inputs) const {
  ParamOp param = measured.param;
  std::vector<float> compensated(weight.elements.begin(), weight.elements.end());
  compress::Weight after{compensated, weight.rows, weight.columns};
  auto rounded = chooseCodebook(measured, after, marks, isTable, compensatesErrors, inputs);
  if (failed(rounded))
    return failure();
  std::vector<float> others = compensated;
  compress::Weight base{others, weight.rows, weight.columns};
  FailureOr<compress::SparseWeight> sparse = detach(param, base, marks);
  if (failed(sparse))
    return failure();
  compress::writeValues(*rounded, base);
  compress::takeMissing(after, base, *sparse);
  if (compensatesErrors && refinements > 0) {
    FailureOr<compress::Hessian> hessian = inputs.getHessian(measured);
    compress::CodebookFormat format = cast<CodebookAttr>(getBase(param)).getFormat();
    if (failed(hessian) || failed(report(param.getLoc(), compress::refineCodebook(weight, format, *hessian, refinements,
                                                                                  *rounded, &*sparse))))
      return failure();
  }
  return RoundedWeight{std::move(*rounded), std::move(*sparse)};
}

FailureOr<RoundedWeight> QuantizeWeights::round(const MeasuredWeight &measured, const compress::Weight &weight,
                                                int64_t slots, bool isTable, MeasuredInputs &inputs) const {
  bool compensatesErrors = this->compensatesErrors() && inputs.has(measured) && !isTable;
  FailureOr<compress::Outliers> marks = markOutliers(measured, weight, slots, isTable, compensatesErrors, inputs);
  if (failed(marks))
    return failure();
  if (isa<CodebookAttr>(getBase(measured.param)))
    return roundToCodebook(measured, weight, *marks, isTable, compensatesErrors, inputs);
  return compensatesErrors ? roundWithCompensation(measured, weight, *marks, inputs)
                           : roundToNearest(measured, weight, *marks, isTable, inputs);
}

/// Each expert by what was measured of it, with as many of the `slots`.
FailureOr<RoundedWeight> QuantizeWeights::roundExperts(ParamOp param, const compress::Weight &weight, int64_t slots,
                                                       int64_t experts, MeasuredInputs &inputs) const {
  int64_t rows = weight.rows / experts;
  std::optional<RoundedWeight> all;
  for (int64_t expert = 0; expert < experts; ++expert) {
    compress::Weight part{weight.elements.subspan(expert * rows * weight.columns, rows * weight.columns), rows,
                          weight.columns};
    FailureOr<RoundedWeight> one = round({param, expert}, part, slots / experts, /*isTable=*/false, inputs);
    if (failed(one))
      return failure();
    if (all)
      all->append(*one);
    else
      all = std::move(*one);
  }
  return std::move(*all);
}

/// What a remark says of weights that are not rounded with error compensation although that was asked for.
static std::string describeMethod(ParamOp param, bool isTable, int64_t experts, MeasuredInputs &inputs) {
  if (isTable)
    return ", rounded to nearest: an embedding reads it";
  if (experts == 0)
    return inputs.has(param) ? "" : ", rounded to nearest: nothing was measured of its inputs";
  int64_t missing = 0;
  for (int64_t expert = 0; expert < experts; ++expert)
    missing += !inputs.has({param, expert});
  if (missing == 0)
    return "";
  return (", " + Twine(missing) + " of " + Twine(experts) + " experts rounded to nearest: no row chose them").str();
}

static std::string describeSlots(ParamOp param, int64_t slots, int64_t experts) {
  int64_t rows = experts > 0 ? param.getTensorType().getDimSize(0) / experts : 0;
  if (rows % compress::kSparseRows != 0)
    return (", without outliers: the " + Twine(rows) + " outputs of an expert are no multiple of " +
            Twine(compress::kSparseRows))
        .str();
  return (", and " + Twine(slots) + " slots of elements in 16").str();
}

FailureOr<std::string> QuantizeWeights::quantize(ParamOp param, ArrayRef<GetParamOp> reads, MeasuredInputs &inputs) {
  EncodingInterface base = getBase(param);
  auto codebook = dyn_cast<CodebookAttr>(base);
  int64_t elementBits = codebook ? codebook.getBits() : cast<AffineAttr>(base).getBits();
  std::string what =
      ("is stored in " + Twine(elementBits) + " bits an element" + (codebook ? " and codebooks" : "")).str();
  int64_t experts = inputs.countExperts(param);
  EncodingInterface chosen = getEncoding(param, experts, mayKeepOutliers(reads));
  auto sparse = dyn_cast<DenseSparseAttr>(chosen);
  int64_t count = sparse ? sparse.getOutliers() : 0, slots = count / compress::kSparseRows;
  numOutliers += count;
  if (shares.hasAny() || count > 0)
    what += mayKeepOutliers(reads) ? describeSlots(param, slots, experts) : ", without outliers: it is of experts";
  bool isTable = hone::isTable(reads);
  if (compensatesErrors())
    what += describeMethod(param, isTable, experts, inputs);
  // Which is what writing it does.
  if (!inputs.has(param) && experts == 0 && !codebook && scales == "absmax" &&
      (slots == 0 || outlierMethod == "magnitude")) {
    changeEncoding(param, reads, chosen);
    return what;
  }
  FailureOr<std::vector<float>> before = readElements(param);
  if (failed(before) || failed(checkFinite(param, *before)))
    return failure();
  compress::Weight weight = asWeight(param, *before);
  FailureOr<RoundedWeight> rounded =
      experts > 0 ? roundExperts(param, weight, slots, experts, inputs) : round(param, weight, slots, isTable, inputs);
  if (failed(rounded))
    return failure();
  if (inputs.has(param) || experts > 0) {
    std::vector<float> after(before->size());
    rounded->writeValues(base, asWeight(param, after));
    FailureOr<std::string> error = inputs.describeError(param, *before, after);
    if (failed(error))
      return failure();
    what += error->empty() ? "" : ", " + *error;
  }
  changeEncoding(param, reads, chosen);
  param.setStorageAttr(rounded->makeStorage(param.getTensorType()));
  return what;
}

/// A file of sensitivities that names no weight of the model is that of another model, or has other names.
LogicalResult QuantizeWeights::checkNames(StringRef file, llvm::function_ref<bool(const std::string &)> has) {
  ParamOp first;
  for (auto &[op, reads] : findReads(getOperation())) {
    auto param = cast<ParamOp>(op);
    if (!getEncodingBlocker(param, reads).empty())
      continue;
    if (has(MeasuredWeight(param).getName()) || has(MeasuredWeight(param, 0).getName()))
      return success();
    first = first ? first : param;
  }
  if (!first)
    return success();
  return emitError(getOperation().getLoc())
         << file << ": expected tensors with the names of weights of the model, such as '" << first.getSymName()
         << "', but there is none";
}

LogicalResult QuantizeWeights::checkFiles() {
  if (scores && failed(checkNames(scores->file(), [&](const std::string &name) { return scores->has(name); })))
    return failure();
  if (outlierShares.empty())
    return success();
  return checkNames(outlierShares, [&](const std::string &name) { return shares.has(name); });
}

void QuantizeWeights::runOnOperation() {
  if (failed(checkFiles()))
    return signalPassFailure();
  FailureOr<MeasuredInputs> inputs = MeasuredInputs::open(statistics, getOperation());
  if (failed(inputs) || (!statistics.empty() && failed(keepFingerprint(getOperation()))))
    return signalPassFailure();
  auto change = [&](ParamOp param, ArrayRef<GetParamOp> reads) {
    if (outputEncoding && !param->hasAttr(kEncodingAttr) && !isTable(reads) && isReturnedProduct(reads))
      param->setAttr(kEncodingAttr, getOutputEncoding(param));
    FailureOr<std::string> what = quantize(param, reads, *inputs);
    param->removeAttr(kEncodingAttr);
    return what;
  };
  auto quantized = changeParameters(
      getOperation(), {"hone-quantize-weights", "Quantized", "stays as it is", getEncodingBlocker, change});
  if (failed(quantized))
    return signalPassFailure();
  numQuantized += *quantized;
}

} // namespace hone
