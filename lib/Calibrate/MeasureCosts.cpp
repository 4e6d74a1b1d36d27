// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One weight in memory at a time; the artefact's file is where it changes.

#include "hone/Calibrate/MeasureCosts.h"

#include "hone/Artefact/Artefact.h"
#include "hone/Compress/Difference.h"
#include "hone/Compress/Rounding.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Transforms/MeasuredInputs.h"
#include "hone/calibration/statistics.h"
#include "hone/cli/divergence.h"
#include "hone/cli/progress.h"

#include "llvm/ADT/StringMap.h"

#include <fstream>

using namespace mlir;

namespace hone {

/// Bits that a weight is rounded to, and fewer for one that means the same in as many; in groups of so many inputs.
static constexpr int64_t kBits[] = {3, 2}, kGroup = 64;

namespace {
/// The inputs of the parts of a weight that lie one below the other: of its experts, or of all of it. Of some nothing was measured.
using PartSites = SmallVector<std::optional<size_t>>;

struct CostMeter {
  const calibration::Statistics &statistics;
  const cli::Predictions &predictions;
  size_t site = 0; // of what is kept
  std::vector<float> hessian = {};
  std::optional<compress::InverseFactor> factor = {};

  FailureOr<calibration::Cost> measure(ParamOp param, const PartSites &sites);

private:
  LogicalResult openSite(ParamOp param, size_t number);
  FailureOr<double> round(ParamOp param, const compress::Weight &weight, const PartSites &sites,
                          const compress::AffineFormat &format, MutableArrayRef<float> rounded);
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
  hessian = statistics.secondMoment(number);
  compress::Hessian view{hessian, statistics.site(number).width};
  auto created = compress::InverseFactor::create(view, compress::orderByDiagonal(view));
  if (failed(report(param.getLoc(), created.status())))
    return failure();
  factor = std::move(*created);
  site = number;
  return success();
}

/// The rounded elements, and the mean square of what that changes of the outputs over all rows that were measured, relative to that of
/// the outputs; of elements where nothing was measured.
FailureOr<double> CostMeter::round(ParamOp param, const compress::Weight &weight, const PartSites &sites,
                                   const compress::AffineFormat &format, MutableArrayRef<float> rounded) {
  llvm::copy(weight.elements, rounded.begin());
  size_t size = rounded.size() / sites.size();
  double change = 0, energy = 0;
  for (auto [i, measured] : llvm::enumerate(sites)) {
    compress::Weight before = asWeight(param, {weight.elements.data() + i * size, size}),
                     after = asWeight(param, rounded.slice(i * size, size));
    if (measured && failed(openSite(param, *measured)))
      return failure();
    auto codes = measured ? compress::roundWithCompensation(after, format, *factor, /*hasStaticScales=*/true,
                                                            /*searchesScales=*/true)
                          : compress::roundToNearest(before, format, std::vector<float>(weight.columns, 1));
    if (failed(report(param.getLoc(), codes.status())))
      return failure();
    compress::writeValues(*codes, format, after);
    if (!measured)
      continue;
    compress::Hessian view{hessian, weight.columns};
    double error = compress::relativeOutputError(before, after, view),
           ofPart = static_cast<double>(statistics.rowCount(*measured)) * compress::outputEnergy(before, view);
    change += error * error * ofPart;
    energy += ofPart;
  }
  if (energy > 0)
    return change / energy;
  double error = compress::relativeDifference(weight.elements, rounded);
  return error * error;
}

FailureOr<calibration::Cost> CostMeter::measure(ParamOp param, const PartSites &sites) {
  FailureOr<std::vector<float>> elements = readStoredElements(param);
  if (failed(elements) || failed(checkFinite(param, *elements)))
    return failure();
  std::vector<float> rounded(elements->size());
  FailureOr<double> error = 0;
  for (int64_t bits : kBits) {
    compress::AffineFormat format{bits, kGroup, /*hasZeros=*/false, /*isSigned=*/false, /*hasHalfScales=*/true};
    error = round(param, asWeight(param, *elements), sites, format, rounded);
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

/// The inputs of `weight`, or of each of its experts. One that no row chose was not measured.
static PartSites findSites(const llvm::StringMap<size_t> &sites, StringRef weight,
                           const calibration::Statistics &statistics) {
  PartSites found;
  if (auto site = sites.find(weight); site != sites.end())
    return {site->second};
  for (int64_t expert = 0;; ++expert) {
    auto site = sites.find(getExpertName(weight, expert));
    if (site == sites.end())
      break;
    found.push_back(statistics.rowCount(site->second) > 0 ? std::optional(site->second) : std::nullopt);
  }
  return found.empty() ? PartSites{std::nullopt} : found;
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
    auto param = params.lookup<ParamOp>(weight);
    if (!param)
      return emitError(module->getLoc()) << "expected the artefact to hold " << weight;
    FailureOr<calibration::Cost> cost = meter.measure(param, findSites(sites, weight, statistics));
    if (failed(cost))
      return failure();
    costs.push_back(std::move(*cost));
  }
  return costs;
}

} // namespace hone
