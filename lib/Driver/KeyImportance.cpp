// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model is compiled as one whose keys are bounded, but to more than there are: it has the entry that measures.

#include "KeyImportance.h"

#include "hone/Artefact/Artefact.h"
#include "hone/Compress/KeyImportance.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/cli/key_importance.h"
#include "hone/io/file.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hone {

LogicalResult measureKeyImportance(const KeyImportanceOptions &options, MLIRContext *context) {
  Location loc = FileLineColLoc::get(context, llvm::sys::path::filename(options.compile.input), 0, 0);
  auto tokens = cli::readCalibrationTokens(options.tokens, options.window, options.maxTokens);
  if (failed(report(loc, tokens.status())))
    return failure();
  if (auto output = io::FileWriter::create(options.output); !output.ok()) // now, not when all is measured
    return report(loc, output.status());
  FailureOr<io::TemporaryPath> folder = makeTemporaryFolder(options.output, loc);
  if (failed(folder))
    return failure();
  compress::KeyImportance importance;
  CompileOptions compileOptions = options.compile;
  compileOptions.retention.policy = "prefix";
  compileOptions.retention.budget = kMostRetainedKeys;
  compileOptions.outputs.path = folder->path() + "/model.hone";
  compileOptions.otherInputs = {options.tokens};
  compileOptions.outputs.others = {options.output};
  compileOptions.rewrite = [&](ModuleOp module) -> LogicalResult {
    FailureOr<std::string> fingerprint = getFingerprint(module);
    if (failed(fingerprint))
      return failure();
    importance.model = std::move(*fingerprint);
    if (!module.lookupSymbol(kImportance))
      return emitError(loc) << "nothing to measure: no attention of the model is causal and over all keys";
    return success();
  };
  if (failed(compile(compileOptions, context)))
    return failure();
  auto measured = cli::measureKeyImportance(compileOptions.outputs.path, *tokens, options.threads);
  if (failed(report(loc, measured.status())))
    return failure();
  importance.mass = *std::move(measured);
  if (failed(report(loc, compress::writeKeyImportance(options.output, importance))))
    return failure();
  llvm::outs() << "importance of keys of " << importance.mass.size() << " layers on " << tokens->ids.size()
               << " tokens\n";
  return success();
}

} // namespace hone
