// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model is compiled as one whose keys are bounded, but to more than there are: so its state has the queries too, and entries over it
// measure.

#include "AttentionMeasures.h"
#include "AttentionReport.h"
#include "MeasuredOutput.h"

#include "hone/Artefact/Artefact.h"
#include "hone/Compress/AttentionThresholds.h"
#include "hone/Compress/KeyImportance.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Dialect/Hone/Retention.h"
#include "hone/cli/attention_thresholds.h"
#include "hone/cli/key_importance.h"
#include "hone/io/file.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hone {
namespace {

/// The model beside the output, which is gone with it, and what it is to be run on.
struct MeasuredCopy {
  cli::CalibrationTokens tokens;
  io::TemporaryPath folder;
  std::string artefact, fingerprint;
};

} // namespace

static Location getLocation(const AttentionMeasureOptions &options, MLIRContext *context) {
  return FileLineColLoc::get(context, llvm::sys::path::filename(options.compile.input), 0, 0);
}

static FailureOr<MeasuredCopy> compileCopy(const AttentionMeasureOptions &options, bool measuresSelection,
                                           MLIRContext *context) {
  Location loc = getLocation(options, context);
  auto tokens = cli::readCalibrationTokens(options.tokens, options.window, options.maxTokens);
  if (failed(report(loc, tokens.status())))
    return failure();
  FailureOr<io::TemporaryPath> folder = makeFolderBeside(options.output, loc);
  if (failed(folder))
    return failure();
  std::string fingerprint;
  CompileOptions compileOptions = options.compile;
  compileOptions.attention.isMeasured = measuresSelection;
  compileOptions.retention.policy = "prefix";
  compileOptions.retention.budget = kMostRetainedKeys;
  compileOptions.outputs.path = folder->path() + "/model.hone";
  compileOptions.otherInputs = {options.tokens};
  compileOptions.outputs.others = {options.output};
  compileOptions.rewrite = [&](ModuleOp module) -> LogicalResult {
    FailureOr<std::string> found = getFingerprint(module);
    if (failed(found))
      return failure();
    fingerprint = std::move(*found);
    if (!module.lookupSymbol(kImportance))
      return emitError(loc) << "nothing to measure: no attention of the model is causal and over all keys";
    return success();
  };
  if (failed(compile(compileOptions, context)))
    return failure();
  return MeasuredCopy{*std::move(tokens), *std::move(folder), compileOptions.outputs.path, std::move(fingerprint)};
}

LogicalResult measureKeyImportance(const AttentionMeasureOptions &options, MLIRContext *context) {
  Location loc = getLocation(options, context);
  FailureOr<MeasuredCopy> copy = compileCopy(options, /*measuresSelection=*/false, context);
  if (failed(copy))
    return failure();
  auto measured = cli::measureKeyImportance(copy->artefact, copy->tokens, options.threads);
  if (failed(report(loc, measured.status())))
    return failure();
  compress::KeyImportance importance = {copy->fingerprint, *std::move(measured)};
  if (failed(report(loc, compress::writeKeyImportance(options.output, importance))))
    return failure();
  llvm::outs() << "importance of keys of " << importance.mass.size() << " layers on " << copy->tokens.ids.size()
               << " tokens\n";
  return success();
}

/// A line for each layer, and what all heads read together.
static void print(ArrayRef<cli::LayerThresholds> chosen, size_t tokens) {
  size_t count = 0;
  double blocks = 0, greatest = 0;
  for (const auto &[slot, layer] : chosen) {
    double ofLayer = 0, worst = 0;
    for (const cli::HeadThresholds &head : layer) {
      ofLayer += head.blocks / static_cast<double>(layer.size());
      worst = std::max(worst, head.error);
      blocks += head.blocks;
    }
    count += layer.size();
    greatest = std::max(greatest, worst);
    llvm::outs() << llvm::formatv("{0}: {1:P1} of the blocks, errors up to {2:P1}\n", slot, ofLayer, worst);
  }
  llvm::outs() << llvm::formatv(
      "thresholds of {0} KV heads of {1} layers on {2} tokens: {3:P1} of the blocks, errors up to {4:P1}\n", count,
      chosen.size(), tokens, blocks / static_cast<double>(count), greatest);
}

LogicalResult measureAttentionThresholds(const AttentionMeasureOptions &options, double error, const std::string &page,
                                         MLIRContext *context) {
  Location loc = getLocation(options, context);
  io::FileWriter pageFile;
  if (!page.empty()) {
    auto writer = io::FileWriter::create(page);
    if (failed(report(loc, writer.status())))
      return failure();
    pageFile = *std::move(writer);
  }
  FailureOr<MeasuredCopy> copy = compileCopy(options, /*measuresSelection=*/true, context);
  if (failed(copy))
    return failure();
  SparsifyAttentionOptions pattern = options.compile.attention.getPassOptions();
  auto chosen = cli::searchAttentionThresholds(copy->artefact, copy->tokens, error, pattern.least, options.threads);
  if (failed(report(loc, chosen.status())))
    return failure();
  compress::AttentionThresholds thresholds = {copy->fingerprint, pattern.sinks, pattern.window, pattern.block, {}};
  for (const auto &[slot, layer] : *chosen)
    for (const cli::HeadThresholds &head : layer)
      for (double threshold : {head.least, head.share, head.similarity})
        thresholds.rows[slot].push_back(static_cast<float>(threshold));
  if (failed(report(loc, compress::writeAttentionThresholds(options.output, thresholds))))
    return failure();
  if (!page.empty() &&
      (failed(report(loc, pageFile.write(makeAttentionPage(options.compile.input, *chosen, pattern.block)))) ||
       failed(report(loc, pageFile.commit()))))
    return failure();
  print(*chosen, copy->tokens.ids.size());
  return success();
}

} // namespace hone
