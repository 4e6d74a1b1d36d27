// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One weight in memory at a time; the artefact's file is where it changes.

#include "MeasureCosts.h"

#include "Artefact.h"
#include "cli/progress.h"
#include "hone/Compress/Difference.h"
#include "hone/Compress/Rounding.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Transforms/MeasuredInputs.h"

#include "llvm/ADT/StringMap.h"

#include <fstream>

using namespace mlir;

namespace hone {

/// Bits that a weight is rounded to, and fewer for one that means the same in as many; in groups of so many inputs.
static constexpr int64_t kBits[] = {3, 2}, kGroup = 64;

namespace {
struct CostMeter {
  const calibration::Statistics &statistics;
  const cli::Predictions &predictions;
  size_t site = 0; // of what is kept
  std::vector<float> moment = {};
  std::optional<compress::InverseFactor> factor = {};

  FailureOr<calibration::Cost> measure(ParamOp param, std::optional<size_t> site);

private:
  LogicalResult openSite(ParamOp param, size_t number);
  FailureOr<double> round(ParamOp param, const compress::Weight &weight, const compress::AffineFormat &format,
                          MutableArrayRef<float> rounded) const;
};
} // namespace

/// Writes `elements` over those of `param` in its file.
static LogicalResult overwrite(ParamOp param, ArrayRef<float> elements) {
  RankedTensorType type = param.getTensorType();
  ArrayRef<char> dense(reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(float));
  SmallVector<SmallVector<char, 0>> planes;
  for (const EncodingPlane &plane : getPlanes(type))
    planes.emplace_back().resize(getDenseBytes(plane.type).value_or(0));
  SmallVector<MutableArrayRef<char>> buffers(planes.begin(), planes.end());
  if (auto encoding = dyn_cast_or_null<EncodingInterface>(type.getEncoding())) {
    if (failed(
            encoding.pack(type.getShape(), type.getElementType(), dense, buffers, [&] { return param.emitError(); })))
      return failure();
  } else {
    llvm::copy(dense, planes[0].begin());
  }
  for (auto [plane, storage] : llvm::zip_equal(planes, param.getPlaneStorage())) {
    auto external = cast<ExternalAttr>(storage);
    std::fstream file(external.getFile().str(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(external.getOffset());
    file.write(plane.data(), static_cast<std::streamsize>(plane.size()));
    if (!file.flush())
      return param.emitError() << "cannot write " << external.getFile();
  }
  return success();
}

LogicalResult CostMeter::openSite(ParamOp param, size_t number) {
  if (factor && site == number)
    return success();
  moment = statistics.secondMoment(number);
  compress::SecondMoment view{moment, statistics.site(number).width};
  auto created = compress::InverseFactor::create(view, compress::orderByDiagonal(view));
  if (failed(report(param.getLoc(), created.status())))
    return failure();
  factor = std::move(*created);
  site = number;
  return success();
}

/// The rounded elements, and the mean square of what that changes, relative to what there was.
FailureOr<double> CostMeter::round(ParamOp param, const compress::Weight &weight, const compress::AffineFormat &format,
                                   MutableArrayRef<float> rounded) const {
  compress::Weight after = asWeight(param, rounded);
  llvm::copy(weight.elements, rounded.begin());
  auto levels = factor ? compress::roundWithFeedback(after, format, *factor, /*hasStaticScales=*/true,
                                                     /*searchesScales=*/true)
                       : compress::roundToNearest(weight, format, std::vector<float>(weight.columns, 1));
  if (failed(report(param.getLoc(), levels.status())))
    return failure();
  compress::writeValues(*levels, format, after);
  double error = factor ? compress::relativeOutputError(weight, after, {moment, weight.columns})
                        : compress::relativeDifference(weight.elements, rounded);
  return error * error;
}

FailureOr<calibration::Cost> CostMeter::measure(ParamOp param, std::optional<size_t> number) {
  FailureOr<std::vector<float>> elements = readStoredElements(param);
  if (failed(elements) || failed(checkFinite(param, *elements)))
    return failure();
  if (!number)
    factor.reset();
  else if (failed(openSite(param, *number)))
    return failure();
  std::vector<float> rounded(elements->size());
  FailureOr<double> error = 0;
  for (int64_t bits : kBits) {
    compress::AffineFormat format{bits, kGroup, /*hasZeros=*/false, /*isSigned=*/false, /*hasHalfScales=*/true};
    error = round(param, asWeight(param, *elements), format, rounded);
    if (failed(error))
      return failure();
    if (*error > 0)
      break;
  }
  if (*error == 0)
    return calibration::Cost{param.getSymName().str(), 0};
  if (failed(overwrite(param, rounded)))
    return failure();
  absl::StatusOr<double> divergence = predictions.measureDivergence();
  if (failed(report(param.getLoc(), divergence.status())) || failed(overwrite(param, *elements)))
    return failure();
  return calibration::Cost{param.getSymName().str(), static_cast<float>(std::max(*divergence, 0.0) / *error)};
}

FailureOr<std::vector<calibration::Cost>> measureCosts(const std::string &path, ArrayRef<std::string> weights,
                                                       const calibration::Statistics &statistics,
                                                       const cli::Predictions &predictions, MLIRContext *context) {
  OwningOpRef<ModuleOp> module = readWeights(path, context);
  if (!module)
    return failure();
  SymbolTable params(*module);
  llvm::StringMap<size_t> sites;
  for (size_t i = 0; i < statistics.siteCount(); ++i)
    for (const std::string &weight : statistics.site(i).weights)
      sites[weight] = i;
  CostMeter meter{statistics, predictions};
  std::vector<calibration::Cost> costs;
  cli::Progress progress("measuring what errors cost", static_cast<int64_t>(weights.size()));
  for (const std::string &weight : weights) {
    progress.update(static_cast<int64_t>(costs.size()), weight);
    auto site = sites.find(weight);
    auto param = params.lookup<ParamOp>(weight);
    if (!param)
      return emitError(module->getLoc()) << "expected the artefact to hold " << weight;
    FailureOr<calibration::Cost> cost =
        meter.measure(param, site == sites.end() ? std::nullopt : std::optional(site->second));
    if (failed(cost))
      return failure();
    costs.push_back(std::move(*cost));
  }
  return costs;
}

} // namespace hone
