// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles a copy of a model that shows what its layers read, and runs it.

#include "Calibrate.h"

#include "Artefact.h"
#include "Compiler.h"
#include "cli/calibrate.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Transforms/Observation.h"
#include "hone/Transforms/Passes.h"
#include "hone/io/file.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hone {

/// The entry that a language model has, which is what is observed.
static constexpr llvm::StringLiteral kEntry = "forward";

namespace {
/// What is known of the model before it is lowered.
struct Observed {
  std::string fingerprint;
  std::vector<calibration::Site> sites;
};
} // namespace

/// Nothing but the entry is going to be called.
static void keepEntry(ModuleOp module) {
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (function.getName() != kEntry && SymbolTable::symbolKnownUseEmpty(function, module))
      function.erase();
}

static LogicalResult observe(ModuleOp module, Observed &observed) {
  if (!module.lookupSymbol<func::FuncOp>(kEntry))
    return emitError(module.getLoc()) << "not a language model: it has no entry '" << kEntry << "'";
  FailureOr<std::string> fingerprint = getFingerprint(module);
  if (failed(fingerprint))
    return failure();
  observed.fingerprint = std::move(*fingerprint);
  keepEntry(module);
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.addPass(createObserveInputs({kEntry.str()}));
  if (failed(pm.run(module)))
    return failure();
  for (ObservedSite &site : listObservedSites(module))
    observed.sites.push_back({site.width, std::move(site.weights)});
  if (observed.sites.empty())
    return emitError(module.getLoc()) << "nothing to observe: no linear layer of the model multiplies with a parameter";
  return success();
}

static LogicalResult measure(const CalibrateOptions &options, const cli::CalibrationTokens &tokens,
                             const std::string &artefact, Observed observed, Location loc) {
  auto statistics = calibration::Statistics::create(options.output, std::move(observed.sites));
  if (!statistics.ok())
    return report(loc, statistics.status());
  if (failed(report(loc, cli::runCalibration(artefact, tokens, options.threads, *statistics))))
    return failure();
  return report(loc, statistics->write(static_cast<int64_t>(tokens.ids.size()), observed.fingerprint));
}

LogicalResult calibrate(const CalibrateOptions &options, MLIRContext *context) {
  Location loc = FileLineColLoc::get(context, llvm::sys::path::filename(options.input), 0, 0);
  auto tokens = cli::readCalibrationTokens(options.tokens, options.window, options.maxTokens);
  if (!tokens.ok())
    return report(loc, tokens.status());
  if (auto output = io::FileWriter::create(options.output); !output.ok()) // now, not when all is measured
    return report(loc, output.status());
  FailureOr<io::TemporaryPath> folder = makeTemporaryFolder(options.output, loc);
  if (failed(folder))
    return failure();
  Observed observed;
  CompileOptions compileOptions;
  compileOptions.input = options.input;
  compileOptions.output = folder->path() + "/model.hone";
  compileOptions.remarks = options.remarks;
  compileOptions.progress = options.progress;
  compileOptions.rewrite = [&](ModuleOp module) { return observe(module, observed); };
  if (failed(compile(compileOptions, context)))
    return failure();
  size_t sites = observed.sites.size();
  if (failed(measure(options, *tokens, compileOptions.output, std::move(observed), loc)))
    return failure();
  llvm::outs() << "statistics of " << sites << " inputs on " << tokens->ids.size() << " tokens\n";
  return success();
}

} // namespace hone
