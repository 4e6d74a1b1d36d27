// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles under the eyes of a recorder, measures perplexity, and writes reports.

#include "CompileReport.h"

#include "CompressionReport.h"
#include "RewriteOnnx.h"
#include "hone/Artefact/Artefact.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/io/file.h"
#include "hone/io/output.h"
#include "hone/io/printable.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace hone {

ReportFileFlags::ReportFileFlags(cl::SubCommand &command)
    : files{"report", cl::desc("Write what became of each weight to FILE, .html or .json; may be given for each"),
            cl::value_desc("FILE"), cl::sub(command)} {}

ReportFlags::ReportFlags(cl::SubCommand &command)
    : ReportFileFlags(command),
      tokens{"report-tokens", cl::desc("Also say there how well the model predicts these tokens, before and after"),
             cl::value_desc("FILE.npy"), cl::sub(command)},
      window{"report-window", cl::desc("Tokens a window there; windows do not overlap (default: 512)"), cl::init(512),
             cl::value_desc("N"), cl::sub(command)} {}

ReportOptions ReportFlags::get(bool isQuiet) const {
  ReportOptions options;
  options.files.assign(files.begin(), files.end());
  options.tokens = tokens;
  options.window = window;
  options.summary = !isQuiet;
  return options;
}

/// Opens what is asked for, if all of it can be made: said now, not when the model is compiled.
static FailureOr<std::vector<io::FileWriter>> openReports(const CompileOptions &options, const ReportOptions &report,
                                                          Location loc) {
  std::vector<io::FileWriter> writers;
  for (const std::string &file : report.files) {
    if (!StringRef(file).ends_with(".html") && !StringRef(file).ends_with(".json"))
      return emitError(loc) << "unsupported report '" << file << "'; supported: names that end in .html or .json";
    auto writer = io::FileWriter::create(file);
    if (failed(hone::report(loc, writer.status())))
      return failure();
    writers.push_back(std::move(*writer));
  }
  if (report.window < 1)
    return emitError(loc) << "expected --report-window to be a whole number of at least 1, but got " << report.window;
  if (!report.tokens.empty() && report.files.empty())
    return emitError(loc) << "expected --report with --report-tokens";
  if (!report.tokens.empty() && !options.stopAfter.empty())
    return emitError(loc) << "expected a whole artefact with --report-tokens, but --stop-after makes none";
  return writers;
}

/// What the rewrite phase runs, as text.
static FailureOr<std::string> getPasses(const CompileOptions &options, Location loc) {
  PassManager pm(loc.getContext(), ModuleOp::getOperationName(), PassManager::Nesting::Implicit);
  const Phase *rewrite = llvm::find_if(getPhases(), [](const Phase &phase) { return phase.name == "rewrite"; });
  if (failed(buildPhase(*rewrite, options, pm, loc)))
    return failure();
  return listPasses(pm);
}

/// The model as it came, compiled beside the artefact.
static FailureOr<cli::Evaluation> evaluateOriginal(const CompileOptions &options, const cli::EvaluationTokens &tokens,
                                                   MLIRContext *context, Location loc) {
  FailureOr<io::TemporaryPath> folder = makeTemporaryFolder(options.output + ".original", loc);
  if (failed(folder))
    return failure();
  CompileOptions original;
  original.input = options.input;
  original.output = folder->path() + "/model.hone";
  original.cpu = options.cpu;
  if (failed(compile(original, context)))
    return failure();
  auto found = cli::runEvaluation(original.output, tokens, 0);
  if (!found.ok())
    return hone::report(loc, found.status());
  return *found;
}

static absl::Status writeReport(const std::string &file, const CompressionRecord &record, io::FileWriter &writer) {
  std::string text = StringRef(file).ends_with(".json")
                         ? llvm::formatv("{0:2}\n", llvm::json::Value(describeRecord(record))).str()
                         : makeReportPage(record);
  HONE_RETURN_IF_ERROR(writer.write(text));
  return writer.commit();
}

/// Whether a user who asked for nothing else wants to read what became of the weights.
static bool isCompressing(const CompileOptions &options) {
  return !options.prune.empty() || !options.quantize.empty() || options.targetBits;
}

/// The record of what `options` make of their input.
static void name(CompressionRecord &record, const CompileOptions &options) {
  record.model = llvm::sys::path::filename(options.input).str();
  record.label = llvm::sys::path::stem(options.output.empty() ? options.input : options.output).str();
}

/// Writes the files of `report`, and prints the summary where it wants one.
static LogicalResult writeReports(const CompileOptions &options, const ReportOptions &report,
                                  const CompressionRecord &record, std::vector<io::FileWriter> &writers, Location loc) {
  for (auto [file, writer] : llvm::zip_equal(report.files, writers))
    if (failed(hone::report(loc, writeReport(file, record, writer))))
      return failure();
  if (report.summary && isCompressing(options) && !record.weights.empty())
    printSummary(llvm::errs(), record);
  return success();
}

LogicalResult rewriteWithReport(const CompileOptions &options, const ReportOptions &report, ModuleOp module) {
  Location loc = FileLineColLoc::get(module.getContext(), llvm::sys::path::filename(options.input), 0, 0);
  FailureOr<std::vector<io::FileWriter>> writers = openReports(options, report, loc);
  if (failed(writers))
    return failure();
  CompressionRecorder recorder(/*measures=*/true);
  name(recorder.record, options);
  CompileOptions watched = options;
  watched.recorder = &recorder;
  if (failed(rewriteOnnx(watched, module)))
    return failure();
  return writeReports(options, report, recorder.record, *writers, loc);
}

LogicalResult compileWithReport(const CompileOptions &options, const ReportOptions &report, MLIRContext *context) {
  Location loc = FileLineColLoc::get(context, llvm::sys::path::filename(options.input), 0, 0);
  bool measures = (report.summary && isCompressing(options)) || !report.files.empty();
  CompressionRecorder recorder(measures);
  CompressionRecord &record = recorder.record;
  FailureOr<std::string> passes = getPasses(options, loc);
  if (failed(passes))
    return failure();
  FailureOr<std::vector<io::FileWriter>> writers = openReports(options, report, loc);
  if (failed(writers))
    return failure();
  record.passes = std::move(*passes);
  name(record, options);
  std::optional<cli::EvaluationTokens> tokens;
  if (!report.tokens.empty()) {
    auto read = cli::readEvaluationTokens(report.tokens, report.window);
    if (!read.ok())
      return hone::report(loc, read.status());
    tokens = std::move(*read);
    FailureOr<cli::Evaluation> before = evaluateOriginal(options, *tokens, context, loc);
    if (failed(before))
      return failure();
    record.before = *before;
  }
  CompileOptions watched = options;
  watched.recorder = &recorder;
  watched.otherInputs = {report.tokens};
  watched.otherOutputs = report.files;
  if (failed(compile(watched, context)))
    return failure();
  if (tokens) {
    auto after = cli::runEvaluation(options.output, *tokens, 0);
    if (!after.ok())
      return hone::report(loc, after.status());
    record.after = *after;
  }
  return writeReports(options, report, record, *writers, loc);
}

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

LogicalResult compareReports(llvm::ArrayRef<std::string> inputs, StringRef output, MLIRContext *context) {
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

} // namespace hone
