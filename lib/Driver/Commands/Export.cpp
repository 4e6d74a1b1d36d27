// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone export`: the model as ONNX, compressed where that was asked for.

#include "hone/Export/Export.h"
#include "Command.h"
#include "CompileReport.h"
#include "ModelFolder.h"
#include "Options/Progress.h"
#include "Outputs.h"
#include "hone/Dialect/Hone/Report.h"

using namespace mlir;

namespace hone {

namespace {
struct ExportOptions {
  explicit ExportOptions(OptionSet &set) {
    set.addInput(compile.input, "MODEL.mlir|.mlirbc|.onnx|FOLDER");
    set.add("o", compile.outputs.path, "FILE",
            "Write to FILE (default: the model's name with .onnx; of an ONNX file, with .rewritten.onnx)");
    compile.compression.declare(set);
    compile.reading.declare(set);
    report.declare(set);
    progress.declare(set, "No progress and no table on standard error");
  }

  CompileOptions compile;
  ReportOptions report;
  ProgressOptions progress;
};
} // namespace

/// The default output: an ONNX file is not written over.
static std::string nameExport(StringRef input) {
  return replaceEnding(input, input.ends_with(".mlir") || input.ends_with(".mlirbc") ? "onnx" : "rewritten.onnx");
}

/// Says where the files go. The second one lies beside the first one, and not beside a link to it.
static LogicalResult placeOutputs(CompileOptions &compile, const ReportOptions &reports, Location loc) {
  std::string &path = compile.outputs.path;
  auto place = io::followLinks(path.empty() ? nameExport(compile.input) : path);
  if (failed(report(loc, place.status())))
    return failure();
  path = *place;
  compile.outputs.others = reports.files;
  compile.outputs.others.push_back(path + kDataEnding.str());
  return success();
}

static LogicalResult exportModel(ExportOptions &options, MLIRContext &context) {
  CompileOptions &compile = options.compile;
  if (failed(placeOutputs(compile, options.report, UnknownLoc::get(&context))))
    return failure();
  OwningOpRef<ModuleOp> module = readModel(compile.input, &context, compile.reading);
  if (!module || failed(checkOutputs(compile, listInputs(compile, {*module}), module->getLoc())) ||
      failed(rewriteWithReport(compile, options.report, *module)))
    return failure();
  std::optional<cli::Progress> progress;
  return exportOnnx(*module, compile.outputs.path, [&](int64_t done, int64_t total, StringRef name) {
    if (!progress)
      progress.emplace("writing weights", total);
    progress->update(done, name);
  });
}

static int runExport(ExportOptions &options) {
  if (failed(findModel(options.compile.input)))
    return 1;
  options.compile.reading.limitProcess();
  options.progress.apply();
  options.report.summary = !options.progress.quiet;
  return withContext(options.compile.input, [&](MLIRContext &context) { return exportModel(options, context); });
}

extern const Command kExportCommand = makeCommand<ExportOptions, runExport>("export", "write a model back as ONNX");

} // namespace hone
