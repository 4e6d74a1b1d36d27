// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A recorder watches the compilation; perplexity is measured of the model as it came and of what became of it.

#include "CompileReport.h"

#include "CompressionReport.h"
#include "RewriteOnnx.h"
#include "hone/Artefact/Artefact.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/io/file.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace hone {

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
  if (!report.tokens.empty() && !options.phases.stopAfter.empty())
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
  FailureOr<io::TemporaryPath> folder = makeTemporaryFolder(options.outputs.path + ".original", loc);
  if (failed(folder))
    return failure();
  CompileOptions original;
  original.input = options.input;
  original.outputs.path = folder->path() + "/model.hone";
  original.target.cpu = options.target.cpu;
  if (failed(compile(original, context)))
    return failure();
  auto found = cli::runEvaluation(original.outputs.path, tokens, 0);
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

/// The record of what `options` make of their input.
static void name(CompressionRecord &record, const CompileOptions &options) {
  record.model = llvm::sys::path::filename(options.input).str();
  record.label = llvm::sys::path::stem(options.outputs.path.empty() ? options.input : options.outputs.path).str();
}

/// Writes the files of `report`, and prints the summary where it wants one.
static LogicalResult writeReports(const CompileOptions &options, const ReportOptions &report,
                                  const CompressionRecord &record, std::vector<io::FileWriter> &writers, Location loc) {
  for (auto [file, writer] : llvm::zip_equal(report.files, writers))
    if (failed(hone::report(loc, writeReport(file, record, writer))))
      return failure();
  if (report.summary && options.compression.isAsked() && !record.weights.empty())
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
  bool measures = (report.summary && options.compression.isAsked()) || !report.files.empty();
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
  watched.outputs.others = report.files;
  if (failed(compile(watched, context)))
    return failure();
  if (tokens) {
    auto after = cli::runEvaluation(options.outputs.path, *tokens, 0);
    if (!after.ok())
      return hone::report(loc, after.status());
    record.after = *after;
  }
  return writeReports(options, report, record, *writers, loc);
}

} // namespace hone
