// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone report`: reports of several compressions beside each other.

#include "hone/Dialect/Hone/Report.h"
#include "Command.h"
#include "CompressionReport.h"
#include "FlagChecks.h"
#include "hone/io/file.h"
#include "hone/io/output.h"
#include "hone/io/printable.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hone {

namespace {
struct CompareOptions {
  explicit CompareOptions(OptionSet &set) {
    set.addInputs(inputs, "REPORT.json...");
    set.add("o", output, "FILE.html", "Write a page to FILE (default: a table to standard output)");
  }

  std::vector<std::string> inputs;
  std::string output;
};
} // namespace

/// The models that reports were made of come once each.
static absl::StatusOr<std::vector<ReportPoint>> readAll(llvm::ArrayRef<std::string> inputs) {
  std::vector<ReportPoint> points, originals;
  for (const std::string &input : inputs) {
    HONE_ASSIGN_OR_RETURN(std::vector<ReportPoint> read, readReportPoints(input));
    points.push_back(read[0]);
    bool isKnown = llvm::any_of(originals, [&](const ReportPoint &other) {
      return other.label == read[1].label && other.perplexity == read[1].perplexity;
    });
    if (!isKnown)
      originals.push_back(read[1]);
  }
  points.insert(points.end(), originals.begin(), originals.end());
  llvm::stable_sort(points, [](const auto &a, const auto &b) { return a.bitsPerWeight < b.bitsPerWeight; });
  return points;
}

/// Puts the reports at `inputs` beside each other: as text to standard output, or as a page where `output` names one.
static LogicalResult compareReports(llvm::ArrayRef<std::string> inputs, StringRef output, MLIRContext *context) {
  Location loc = UnknownLoc::get(context);
  io::InputFiles read;
  for (const std::string &input : inputs)
    read.add(input);
  if (failed(report(loc, read.checkOutput(output.str()))))
    return failure();
  auto points = readAll(inputs);
  if (!points.ok())
    return report(loc, points.status());
  if (!output.empty())
    return report(loc, io::writeFile(output.str(), makeFrontierPage(*points)));
  std::vector<bool> isOn = findFrontier(*points);
  llvm::outs() << llvm::formatv("{0,15} {1,12} {2,11}  {3}\n", "bits per weight", "megabytes", "perplexity",
                                "compression (* on the frontier)");
  for (auto [i, point] : llvm::enumerate(*points))
    llvm::outs() << llvm::formatv("{0,15:F3} {1,12:F3} {2,11:F4}  {3}{4}\n", point.bitsPerWeight,
                                  static_cast<double>(point.bytes) / 1e6, point.perplexity, io::printable(point.label),
                                  isOn[i] ? " *" : "");
  return success();
}

static int runReport(CompareOptions &options) {
  if (options.inputs.empty())
    return fail("expected reports, but got none");
  return withContext(options.inputs[0],
                     [&](MLIRContext &context) { return compareReports(options.inputs, options.output, &context); });
}

extern const Command kReportCommand =
    makeCommand<CompareOptions, runReport>("report", "put reports of several compressions beside each other");

} // namespace hone
