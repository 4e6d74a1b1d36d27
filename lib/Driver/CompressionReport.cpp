// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A record of compression as JSON and as a short table, and points read back.

#include "CompressionReport.h"

#include "hone/io/file.h"
#include "hone/io/printable.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
namespace json = llvm::json;

namespace hone {

static constexpr llvm::StringLiteral kFormat = "hone-report";
static constexpr int64_t kVersion = 1;

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static json::Value orNull(std::optional<double> value) { return value ? json::Value(*value) : json::Value(nullptr); }

static json::Object describeStep(const WeightStep &step) {
  return json::Object{{"pass", step.pass},
                      {"changed", step.isChanged},
                      {"text", step.text},
                      {"weight_error", orNull(step.weightError)},
                      {"output_error", orNull(step.outputError)}};
}

json::Object describeWeight(const WeightRecord &weight) {
  json::Array steps;
  for (const WeightStep &step : weight.steps)
    steps.push_back(describeStep(step));
  return json::Object{{"name", weight.name},
                      {"shape_before", json::Array(weight.shapeBefore)},
                      {"shape", json::Array(weight.shapeAfter)},
                      {"form_before", weight.formBefore},
                      {"form", weight.formAfter},
                      {"bytes_before", weight.bytesBefore},
                      {"bytes", weight.bytesAfter},
                      {"bits_per_weight", weight.bitsPerWeight()},
                      {"changed", weight.isChanged()},
                      {"weight_error", orNull(weight.weightError())},
                      {"output_error", orNull(weight.outputError())},
                      {"steps", std::move(steps)}};
}

static json::Value describeEvaluation(const std::optional<cli::Evaluation> &found) {
  if (!found)
    return nullptr;
  return json::Object{{"perplexity", found->perplexity}, {"loss", found->loss}, {"tokens", found->tokens}};
}

/// Bits of each element that the model came with, before anything was done.
static double getBitsBefore(const CompressionRecord &record) {
  double after = record.bitsPerWeight();
  return record.bytesAfter() ? after * record.bytesBefore() / record.bytesAfter() : 0;
}

json::Object describeRecord(const CompressionRecord &record) {
  json::Array weights;
  for (const WeightRecord &weight : record.weights)
    weights.push_back(describeWeight(weight));
  json::Object totals{{"weights", static_cast<int64_t>(record.weights.size())},
                      {"changed", record.countChanged()},
                      {"bytes_before", record.bytesBefore()},
                      {"bytes", record.bytesAfter()},
                      {"bits_per_weight_before", getBitsBefore(record)},
                      {"bits_per_weight", record.bitsPerWeight()}};
  return json::Object{{"format", kFormat},
                      {"version", kVersion},
                      {"label", record.label},
                      {"model", record.model},
                      {"passes", record.passes},
                      {"totals", std::move(totals)},
                      {"before", describeEvaluation(record.before)},
                      {"after", describeEvaluation(record.after)},
                      {"weights", std::move(weights)}};
}

//===----------------------------------------------------------------------===//
// The short table
//===----------------------------------------------------------------------===//

static std::string inMegabytes(int64_t bytes) { return llvm::formatv("{0:F2}", static_cast<double>(bytes) / 1e6); }

static std::string inDigits(std::optional<double> error) {
  return error ? llvm::formatv("{0:F4}", *error).str() : std::string("-");
}

static void printForms(llvm::raw_ostream &os, const CompressionRecord &record) {
  struct Sum {
    int64_t weights = 0, before = 0, after = 0;
  };
  std::map<std::string, Sum> forms;
  for (const WeightRecord &weight : record.weights) {
    Sum &sum = forms[weight.formAfter.empty() ? "(removed)" : weight.formAfter];
    ++sum.weights;
    sum.before += weight.bytesBefore;
    sum.after += weight.bytesAfter;
  }
  std::vector<std::pair<std::string, Sum>> rows(forms.begin(), forms.end());
  llvm::stable_sort(rows, [](const auto &a, const auto &b) { return a.second.before > b.second.before; });
  os << llvm::formatv("  {0,7} {1,11} {2,11}  {3}\n", "weights", "MB before", "MB after", "stored as");
  for (const auto &[form, sum] : llvm::ArrayRef(rows).take_front(4))
    os << llvm::formatv("  {0,7} {1,11} {2,11}  {3}\n", sum.weights, inMegabytes(sum.before), inMegabytes(sum.after),
                        form);
}

static void printWorst(llvm::raw_ostream &os, const CompressionRecord &record) {
  std::vector<const WeightRecord *> worst;
  for (const WeightRecord &weight : record.weights)
    if (weight.weightError())
      worst.push_back(&weight);
  // By what is known of the outputs, and then by the weights themselves.
  auto rank = [](const WeightRecord *weight) { return std::pair(weight->outputError(), weight->weightError()); };
  llvm::stable_sort(worst, [&](const WeightRecord *a, const WeightRecord *b) { return rank(a) > rank(b); });
  if (worst.empty())
    return;
  os << llvm::formatv("  {0,10} {1,9}  {2}\n", "of outputs", "of weight", "largest relative errors");
  for (const WeightRecord *weight : llvm::ArrayRef(worst).take_front(5))
    os << llvm::formatv("  {0,10} {1,9}  {2}\n", inDigits(weight->outputError()), inDigits(weight->weightError()),
                        io::printable(weight->name));
}

void printSummary(llvm::raw_ostream &os, const CompressionRecord &record) {
  os << llvm::formatv("compressed {0} of {1} weights: {2} MB to {3} MB, {4:F2} to {5:F2} bits a weight\n",
                      record.countCompressed(), record.weights.size(), inMegabytes(record.bytesBefore()),
                      inMegabytes(record.bytesAfter()), getBitsBefore(record), record.bitsPerWeight());
  printForms(os, record);
  printWorst(os, record);
  if (record.before && record.after)
    os << llvm::formatv("  perplexity {0:F4} to {1:F4} on {2} tokens\n", record.before->perplexity,
                        record.after->perplexity, record.after->tokens);
}

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

static std::optional<double> getPerplexity(const json::Object &report, StringRef when) {
  const json::Object *found = report.getObject(when);
  return found ? found->getNumber("perplexity") : std::nullopt;
}

absl::StatusOr<std::vector<ReportPoint>> readReportPoints(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(std::string text, io::readFile(path));
  llvm::Expected<json::Value> parsed = json::parse(text);
  if (!parsed)
    return io::invalid(path, ": not JSON: ", llvm::toString(parsed.takeError()));
  const json::Object *report = parsed->getAsObject();
  if (!report || report->getString("format") != kFormat)
    return io::invalid(path, ": expected a report of hone compile --report=FILE.json");
  if (report->getInteger("version") != kVersion)
    return io::invalid(path, ": unsupported version of reports; supported: ", kVersion);
  const json::Object *totals = report->getObject("totals");
  std::optional<double> before = getPerplexity(*report, "before"), after = getPerplexity(*report, "after");
  if (!totals || !before || !after)
    return io::invalid(path, ": expected a report with perplexities; hone compile --report-tokens=FILE.npy makes one");
  auto get = [&](StringRef key) { return totals->getNumber(key).value_or(0); };
  std::string model = report->getString("model").value_or("").str();
  return std::vector<ReportPoint>{
      {report->getString("label").value_or("").str(), report->getString("passes").value_or("").str(),
       get("bits_per_weight"), static_cast<int64_t>(get("bytes")), *after},
      {model, "", get("bits_per_weight_before"), static_cast<int64_t>(get("bytes_before")), *before}};
}

std::vector<bool> findFrontier(llvm::ArrayRef<ReportPoint> points) {
  std::vector<bool> isOn;
  for (const ReportPoint &point : points)
    isOn.push_back(llvm::none_of(points, [&](const ReportPoint &other) {
      return other.bitsPerWeight <= point.bitsPerWeight && other.perplexity <= point.perplexity &&
             (other.bitsPerWeight < point.bitsPerWeight || other.perplexity < point.perplexity);
    }));
  return isOn;
}

} // namespace hone
