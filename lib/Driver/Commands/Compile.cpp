// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone compile`: a model into an artefact.

#include "Command.h"
#include "CompileReport.h"
#include "ModelFolder.h"
#include "Options/Progress.h"

using namespace mlir;

namespace hone {

namespace {
struct CompileCommandOptions {
  explicit CompileCommandOptions(OptionSet &set) {
    set.addInput(compile.input, "MODEL.onnx|.mlir|.mlirbc|FOLDER");
    compile.target.declare(set);
    compile.compression.declare(set);
    compile.compression.declareForms(set);
    compile.compression.pruning.declareOutputs(set);
    compile.storage.declare(set);
    compile.state.declare(set, compile.target);
    compile.encoder.declare(set, compile.phases);
    compile.pooling.declare(set);
    compile.draft.declare(set, compile.target, compile.outputs, compile.phases);
    compile.attention.declare(set, compile.target);
    compile.speculation.declare(set, compile.target);
    compile.retention.declare(set, compile.target, compile.draft, compile.attention, compile.speculation);
    compile.gradients.declare(set, compile.target, compile.phases);
    compile.outputs.declare(set);
    compile.outputs.declareGeneration(set);
    compile.phases.declare(set);
    compile.raising.declare(set);
    compile.reading.declare(set);
    report.declare(set);
    report.declarePerplexity(set);
    progress.declare(set, "No progress and no table on standard error");
    set.add("print-pipeline", printPipeline, "Print the passes of every phase, and stop");
  }

  CompileOptions compile;
  ReportOptions report;
  ProgressOptions progress;
  bool printPipeline = false;
};
} // namespace

static LogicalResult printPipeline(const CompileOptions &options, MLIRContext &context) {
  for (const Phase &phase : getPhases(options.target.device)) {
    PassManager pm(&context, ModuleOp::getOperationName(), PassManager::Nesting::Implicit);
    if (failed(buildPhase(phase, options, pm, UnknownLoc::get(&context))))
      return failure();
    llvm::outs() << "// " << phase.name << ": " << phase.summary << '\n';
    if (pm.size())
      pm.printAsTextualPipeline(llvm::outs(), /*pretty=*/true);
    llvm::outs() << '\n';
  }
  return success();
}

static int runCompile(CompileCommandOptions &options) {
  CompileOptions &compile = options.compile;
  if (compile.outputs.path.empty() && compile.phases.stopAfter.empty())
    compile.outputs.path = nameArtefact(compile.input);
  if (failed(findFiles(compile)))
    return 1;
  compile.reading.limitProcess();
  options.progress.apply();
  options.report.summary = !options.progress.quiet;
  return withContext(compile.input, [&](MLIRContext &context) {
    return options.printPipeline ? printPipeline(compile, context)
                                 : compileWithReport(compile, options.report, &context);
  });
}

extern const Command kCompileCommand = makeCommand<CompileCommandOptions, runCompile>(
    "compile", "compile a model into an artefact, a folder that runs without LLVM");

} // namespace hone
