// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parameters are listed before and after; in between, each pass that goes through changeParameters tells of every one.

#include "CompressionRecord.h"

#include "WeightGrid.h"
#include "hone/Compress/Difference.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace hone {

//===----------------------------------------------------------------------===//
// The record
//===----------------------------------------------------------------------===//

bool WeightRecord::isChanged() const {
  return formBefore != formAfter || shapeBefore != shapeAfter ||
         llvm::any_of(steps, [](const WeightStep &step) { return step.isChanged; });
}

bool WeightRecord::isCompressed() const {
  return formBefore != formAfter || shapeBefore != shapeAfter || llvm::any_of(steps, [](const WeightStep &step) {
           return step.isChanged && step.weightError.value_or(1) != 0;
         });
}

/// The root of the sum of the squares of `error` of all steps that changed elements.
static std::optional<double> addErrors(ArrayRef<WeightStep> steps, std::optional<double> WeightStep::*error) {
  std::optional<double> sum;
  for (const WeightStep &step : steps) {
    if (!step.isChanged || step.weightError.value_or(1) == 0)
      continue;
    if (!(step.*error))
      return std::nullopt;
    sum = sum.value_or(0) + *(step.*error) * *(step.*error);
  }
  return sum ? std::optional(std::sqrt(*sum)) : std::nullopt;
}

std::optional<double> WeightRecord::weightError() const { return addErrors(steps, &WeightStep::weightError); }
std::optional<double> WeightRecord::outputError() const { return addErrors(steps, &WeightStep::outputError); }

std::string WeightRecord::describe() const {
  if (formAfter.empty())
    return "is removed";
  std::string text;
  for (const WeightStep &step : steps)
    if (step.isChanged || !isChanged())
      text += (text.empty() ? "" : "; ") + (step.isChanged ? step.text : "stays as it is: " + step.text);
  if (text.empty())
    text = isChanged() ? "is changed" : "stays as it is";
  return text;
}

int64_t CompressionRecord::bytesBefore() const {
  return std::accumulate(weights.begin(), weights.end(), int64_t(0),
                         [](int64_t sum, const WeightRecord &weight) { return sum + weight.bytesBefore; });
}

int64_t CompressionRecord::bytesAfter() const {
  return std::accumulate(weights.begin(), weights.end(), int64_t(0),
                         [](int64_t sum, const WeightRecord &weight) { return sum + weight.bytesAfter; });
}

double CompressionRecord::bitsPerWeight() const {
  int64_t elements = 0;
  for (const WeightRecord &weight : weights)
    elements += weight.bytesBefore ? weight.elements : 0;
  return elements ? 8.0 * static_cast<double>(bytesAfter()) / static_cast<double>(elements) : 0;
}

int64_t CompressionRecord::countChanged() const {
  return llvm::count_if(weights, [](const WeightRecord &weight) { return weight.isChanged(); });
}

std::string listPasses(OpPassManager &pm) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(pm.getPasses(), os, [&](Pass &pass) { pass.printAsTextualPipeline(os); }, ",");
  return text;
}

int64_t CompressionRecord::countCompressed() const {
  return llvm::count_if(weights, [](const WeightRecord &weight) { return weight.isCompressed(); });
}

//===----------------------------------------------------------------------===//
// The recorder
//===----------------------------------------------------------------------===//

/// How `type` stores its elements.
static std::string getForm(RankedTensorType type) {
  std::string form;
  llvm::raw_string_ostream os(form);
  if (type.getEncoding())
    os << type.getEncoding();
  else
    os << type.getElementType();
  return form;
}

WeightRecord &CompressionRecorder::find(StringRef name) {
  auto [place, isNew] = places.try_emplace(name.str(), record.weights.size());
  if (isNew)
    record.weights.emplace_back().name = name.str();
  return record.weights[place->second];
}

/// The first name of a node that reads a parameter and says where it stands, or an empty string.
static std::string findReader(ArrayRef<GetParamOp> reads) {
  auto getName = [](Operation *op) {
    auto name = op->getLoc()->findInstanceOf<NameLoc>();
    return name && parsePlace(name.getName()) ? name.getName().str() : std::string();
  };
  for (GetParamOp read : reads) {
    if (std::string name = getName(read); !name.empty())
      return name;
    for (Operation *user : read->getUsers())
      if (std::string name = getName(user); !name.empty())
        return name;
  }
  return "";
}

LogicalResult CompressionRecorder::watch(ModuleOp module, llvm::function_ref<LogicalResult()> passes) {
  for (auto &[op, reads] : findReads(module)) {
    auto param = cast<ParamOp>(op);
    RankedTensorType type = param.getTensorType();
    WeightRecord &weight = find(param.getSymName());
    weight.reader = findReader(reads);
    weight.shapeBefore = type.getShape().vec();
    weight.formBefore = getForm(type);
    weight.elements = type.getNumElements();
    weight.bytesBefore = getStorageBytes(type).value_or(0);
  }
  MLIRContext &context = *module.getContext();
  context.registerActionHandler(
      [&](llvm::function_ref<void()> transform, const tracing::Action &action) { handle(transform, action); });
  LogicalResult result = passes();
  context.registerActionHandler({});
  progress.reset();
  if (failed(result) || hasFailed)
    return failure();
  for (auto &[op, reads] : findReads(module)) {
    auto param = cast<ParamOp>(op);
    RankedTensorType type = param.getTensorType();
    WeightRecord &weight = find(param.getSymName());
    weight.shapeAfter = type.getShape().vec();
    weight.formAfter = getForm(type);
    weight.bytesAfter = getStorageBytes(type).value_or(0);
    if (weight.formBefore.empty())
      weight.elements = type.getNumElements();
  }
  return success();
}

/// Passes over functions are handled on several threads at once, but none of those changes parameters.
void CompressionRecorder::handle(llvm::function_ref<void()> transform, const tracing::Action &action) {
  if (auto *change = dyn_cast<ChangeParameterAction>(&action))
    return handleChange(transform, *change);
  if (auto *visit = dyn_cast<VisitParameterAction>(&action))
    showProgress(visit->pass, visit->param, visit->number, visit->count);
  transform();
  if (auto *measured = dyn_cast<MeasureErrorAction>(&action); measured && current)
    current->outputError = measured->error;
}

void CompressionRecorder::handleChange(llvm::function_ref<void()> transform, const ChangeParameterAction &action) {
  ParamOp param = action.param;
  showProgress(action.change.pass, param, action.number, action.count);
  OwningOpRef<ParamOp> before(param.clone());
  WeightStep step;
  step.pass = action.change.pass.str();
  current = &step;
  transform();
  current = nullptr;
  if (hasFailed || action.outcome.kind == ParameterOutcome::Failed)
    return;
  step.text = action.outcome.text;
  step.isChanged = action.outcome.kind == ParameterOutcome::Changed;
  if (step.isChanged && action.change.keepsMeaning) {
    step.weightError = 0;
  } else if (step.isChanged && measures) {
    FailureOr<std::optional<double>> error = measure(*before, param);
    hasFailed |= failed(error);
    if (succeeded(error))
      step.weightError = *error;
  }
  find(param.getSymName()).steps.push_back(std::move(step));
}

void CompressionRecorder::showProgress(StringRef pass, ParamOp param, size_t number, size_t count) {
  if (!progress || shownPass != pass || number < shownNumber) {
    shownPass = pass.str();
    progress.reset(); // whose line disappears before there is another
    progress = std::make_unique<cli::Progress>(shownPass, static_cast<int64_t>(count));
  }
  shownNumber = number;
  progress->update(static_cast<int64_t>(number), param.getSymName());
}

FailureOr<std::optional<double>> CompressionRecorder::measure(ParamOp before, ParamOp after) const {
  RankedTensorType from = before.getTensorType(), to = after.getTensorType();
  if (!from.getElementType().isF32() || getPlainType(from) != getPlainType(to))
    return std::optional<double>();
  if (from == to && before.getStorage() == after.getStorage())
    return std::optional<double>(0);
  FailureOr<std::vector<float>> old = readStoredElements(before);
  if (failed(old))
    return failure();
  FailureOr<std::vector<float>> changed = readStoredElements(after);
  if (failed(changed))
    return failure();
  return std::optional<double>(compress::relativeDifference(*old, *changed));
}

} // namespace hone
