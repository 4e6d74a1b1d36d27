// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statistics of a model, one Hessian in memory at a time.

#include "hone/Transforms/MeasuredInputs.h"

#include "hone/Compress/Rotation.h"
#include "hone/Compress/Structured.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/InputRotation.h"
#include "hone/Dialect/Hone/ParameterActions.h"
#include "hone/Dialect/Hone/Report.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;

namespace hone {

FailureOr<MeasuredInputs> MeasuredInputs::open(StringRef path, ModuleOp module) {
  MeasuredInputs inputs;
  if (path.empty())
    return inputs;
  auto opened = compress::Statistics::open(path.str());
  if (failed(report(module.getLoc(), opened.status())))
    return failure();
  FailureOr<std::string> fingerprint = getFingerprint(module);
  if (failed(fingerprint))
    return failure();
  if (opened->model() != *fingerprint)
    return emitError(module.getLoc()) << path << ": expected statistics of the model with the fingerprint "
                                      << *fingerprint << ", but got those of " << opened->model();
  inputs.file = std::move(*opened);
  return inputs;
}

bool MeasuredInputs::has(const MeasuredWeight &weight) const {
  std::optional<int64_t> found = file ? file->findInput(weight.getName()) : std::nullopt;
  return found && (!weight.expert || file->countRows(*found) > 0);
}

int64_t MeasuredInputs::countExperts(ParamOp weight) const {
  int64_t count = 0;
  while (file && file->findInput(getExpertName(weight.getSymName(), count)))
    ++count;
  return count;
}

double MeasuredInputs::countRows(const MeasuredWeight &weight) const {
  return static_cast<double>(file->countRows(*file->findInput(weight.getName())));
}

FailureOr<double> MeasuredInputs::getCost(ParamOp weight) const {
  if (!hasCosts())
    return 1;
  auto cost = file->readCost(weight.getSymName().str());
  if (failed(report(weight.getLoc(), cost.status())))
    return failure();
  return *cost;
}

/// Whether what is kept is the input of `weight` as it is now.
bool MeasuredInputs::isKept(const MeasuredWeight &weight) const {
  std::optional<InputRotation> rotation = getInputRotation(weight.param);
  return input == *file->findInput(weight.getName()) && getChannelScales(weight.param) == ArrayRef<float>(scales) &&
         seed.has_value() == rotation.has_value() &&
         (!rotation || *rotation == InputRotation{ArrayRef<float>(gain), *seed, block});
}

static void divide(std::vector<float> &hessian, ArrayRef<float> scales) {
  for (size_t i = 0; i < scales.size(); ++i)
    for (size_t j = 0; j < scales.size(); ++j)
      hessian[i * scales.size() + j] /= scales[i] * scales[j];
}

/// Does to what was measured of the input what was done to the input since.
void MeasuredInputs::changeHessian(ParamOp weight) {
  scales = getChannelScales(weight).vec();
  gain.clear();
  seed.reset();
  auto size = weight.getTensorType().getDimSize(1);
  if (static_cast<int64_t>(hessian.size()) != size * size)
    return;
  divide(hessian, scales);
  if (std::optional<InputRotation> rotation = getInputRotation(weight)) {
    gain = rotation->gain.vec();
    seed = rotation->seed;
    block = rotation->block;
    divide(hessian, gain);
    (block > 0 ? compress::Rotation::ofBlocks(size, block) : compress::Rotation(size, *seed)).rotateHessian(hessian);
  }
}

FailureOr<compress::Hessian> MeasuredInputs::getHessian(const MeasuredWeight &measured) {
  ParamOp weight = measured.param;
  int64_t wanted = *file->findInput(measured.getName()), size = weight.getTensorType().getDimSize(1);
  if (!isKept(measured)) {
    input.reset();
    factor.reset();
    std::optional<KeptInputs> kept = getKeptInputs(weight);
    if (kept && measured.expert && static_cast<int64_t>(kept->kept.size()) > size) // experts have inputs of their own
      kept->kept = kept->kept.slice(*measured.expert * size, size);
    auto read = file->readHessian(wanted, kept ? kept->all : size);
    if (failed(report(weight.getLoc(), read.status())))
      return failure();
    if (absl::Status status = compress::checkHessian({*read, kept ? kept->all : size}); !status.ok())
      return weight.emitError() << "cannot use the statistics of the input of " << measured.getName() << ": "
                                << std::string(status.message());
    // Weights with the same input have lost the same of it.
    hessian = kept ? compress::selectInputs({*read, kept->all}, kept->kept) : std::move(*read);
    changeHessian(weight);
    input = wanted;
  }
  if (static_cast<int64_t>(hessian.size()) != size * size)
    return weight.emitError() << "expected the input of " << measured.getName() << " to have " << size
                              << " channels, but the statistics share it with a weight that has others";
  return compress::Hessian{hessian, size};
}

FailureOr<const compress::InverseFactor *> MeasuredInputs::getFactor(const MeasuredWeight &weight, bool isOrdered) {
  FailureOr<compress::Hessian> hessian = getHessian(weight);
  if (failed(hessian))
    return failure();
  if (!factor || isFactorOrdered != isOrdered) {
    std::vector<int64_t> order;
    if (isOrdered)
      order = compress::orderByDiagonal(*hessian);
    auto created = compress::InverseFactor::create(*hessian, order);
    if (!created.ok())
      return ParamOp(weight.param).emitError() << "cannot use the statistics of the input of " << weight.getName()
                                               << ": " << std::string(created.status().message());
    factor = std::move(*created);
    isFactorOrdered = isOrdered;
  }
  return &*factor;
}

FailureOr<double> MeasuredInputs::measureError(const MeasuredWeight &weight, ArrayRef<float> before,
                                               ArrayRef<float> after) {
  FailureOr<compress::Hessian> hessian = getHessian(weight);
  if (failed(hessian))
    return failure();
  auto view = [&](ArrayRef<float> elements) {
    return asWeight(weight.param, {const_cast<float *>(elements.data()), elements.size()});
  };
  return compress::relativeOutputError(view(before), view(after), *hessian);
}

FailureOr<std::string> MeasuredInputs::describeError(ParamOp weight, ArrayRef<float> before, ArrayRef<float> after) {
  int64_t experts = countExperts(weight), measured = 0;
  FailureOr<double> error = experts == 0 ? measureError(weight, before, after) : FailureOr<double>(0);
  for (int64_t expert = 0; expert < experts; ++expert) {
    if (!has({weight, expert}))
      continue;
    size_t size = before.size() / experts;
    FailureOr<double> one =
        measureError({weight, expert}, before.slice(expert * size, size), after.slice(expert * size, size));
    if (failed(one))
      return failure();
    *error += *one;
    ++measured;
  }
  if (failed(error))
    return failure();
  if (experts > 0 && measured == 0)
    return std::string();
  double mean = *error / static_cast<double>(std::max<int64_t>(measured, 1)), reported = 0;
  weight.getContext()->executeAction<MeasureErrorAction>([&] { reported = mean; }, {weight.getOperation()}, weight,
                                                         reported);
  return llvm::formatv("with a relative error of {0:F4} of its outputs", mean).str();
}

compress::Weight asWeight(ParamOp weight, MutableArrayRef<float> elements) {
  int64_t columns = weight.getTensorType().getDimSize(1);
  return {
      {elements.data(), elements.size()}, columns == 0 ? 0 : static_cast<int64_t>(elements.size()) / columns, columns};
}

LogicalResult checkFinite(ParamOp weight, ArrayRef<float> elements) {
  const auto *first = llvm::find_if(elements, [](float element) { return !std::isfinite(element); });
  if (first == elements.end())
    return success();
  int64_t index = first - elements.begin(), columns = weight.getTensorType().getDimSize(1);
  return weight.emitError() << "expected the elements of " << weight.getSymName() << " to be finite, but element ["
                            << index / columns << ", " << index % columns << "] is " << std::to_string(*first);
}

} // namespace hone
