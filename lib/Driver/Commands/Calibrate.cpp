// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone calibrate`: statistics of the inputs of a language model's linear layers (docs/calibration.md). Compiles a copy of the model
// that shows what its layers read, beside the output, and runs it.

#include "hone/cli/calibrate.h"
#include "AttentionMeasures.h"
#include "Command.h"
#include "Compiler.h"
#include "MeasuredOutput.h"
#include "ModelFolder.h"
#include "Options/Progress.h"
#include "Pqi.h"
#include "hone/Artefact/Artefact.h"
#include "hone/Calibrate/MeasureCosts.h"
#include "hone/Compress/Statistics.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Transforms/Observation.h"
#include "hone/Transforms/Passes.h"
#include "hone/cli/divergence.h"
#include "hone/cli/main.h"
#include "hone/io/file.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hone {

/// The entry that a language model has, which is what is observed.
static constexpr llvm::StringLiteral kEntry = "forward";

namespace {
struct CalibrateOptions {
  explicit CalibrateOptions(OptionSet &set);

  CompileOptions compile;     // what is done to the model before it is measured
  std::string tokens, output; // .npy of token ids, .safetensors
  int64_t window = 512;
  int64_t maxTokens = std::numeric_limits<int64_t>::max();
  bool integrates = false; // --pqi
  bool ranksKeys = false;  // --kv-importance
  std::optional<double> attentionError;
  std::string attentionPage; // --attention-report
  std::optional<int64_t> intervals;
  std::optional<int64_t> costTokens; // first tokens to measure on what errors of weights cost
  std::optional<int64_t> threads;
  ProgressOptions progress;

  int getThreads() const { return static_cast<int>(threads.value_or(0)); } // 0: one for each processor
};

/// What is known of the model before it is lowered.
struct Observed {
  std::string fingerprint;
  std::vector<calibration::Site> sites;
  std::vector<std::string> weights; // that can be stored as integers
};

/// Tokens of the options' file.
struct Tokens {
  cli::CalibrationTokens ofInputs;
  std::optional<cli::CalibrationTokens> ofCosts;

  static absl::StatusOr<Tokens> read(const CalibrateOptions &options);
};
} // namespace

CalibrateOptions::CalibrateOptions(OptionSet &set) {
  set.addInput(compile.input, "MODEL.onnx|.mlir|.mlirbc|FOLDER");
  set.add("tokens", tokens, "FILE.npy", "Token ids to run the model on: uint16, int32 or int64, of shape [n]")
      .required();
  set.add("o", output, "FILE.safetensors", "Write the statistics to FILE").required();
  set.add("window", window, "N", "Tokens a window; windows do not overlap (default: 512)").upTo();
  set.add("max-tokens", maxTokens, "N", "Use the first N tokens alone (default: all)").upTo();
  set.add("cost-tokens", costTokens, "N", "Also measure what errors of each weight cost, on the first N tokens").upTo();
  set.add("pqi", integrates,
          "Write the sensitivity of each weight's elements to --quantize instead: gradients integrated along the way "
          "to it")
      .check([this] { return integrates && costTokens ? "expected --pqi or --cost-tokens, but got both" : ""; });
  set.add("intervals", intervals, "N", "Points of the way at which --pqi takes gradients (default: 8)")
      .upTo()
      .needs("--pqi", [this] { return integrates; });
  set.add("kv-importance", ranksKeys,
          "Write how much attention the keys of each layer get instead, for --kv-retention of hone compile")
      .check([this] {
        return ranksKeys && (integrates || costTokens) ? "expected --kv-importance, --pqi or --cost-tokens, but got two"
                                                       : "";
      });
  set.add("attention-error", attentionError, "SHARE",
          "Write thresholds of --attention=sparge for each KV head instead, with which what it gives is off by this "
          "share "
          "at most")
      .needs("--attention=sparge", [this] { return compile.attention.isOfMeans(); })
      .check([this]() -> std::string {
        if (ranksKeys || integrates || costTokens)
          return "expected --attention-error, --kv-importance, --pqi or --cost-tokens, but got two";
        if (compile.attention.share || compile.attention.similarity || !compile.attention.pass.thresholds.empty())
          return "expected --attention-error to find the share and similarity of --attention=sparge, but they are "
                 "given";
        return *attentionError > 0 && *attentionError < 1
                   ? ""
                   : "expected --attention-error to be a number between 0 and 1, such as 0.05";
      });
  set.add("attention-report", attentionPage, "FILE.html",
          "With --attention-error, also write a page that shows what each KV head reads")
      .needs("--attention-error", [this] { return attentionError.has_value(); })
      .check([this] {
        return llvm::StringRef(attentionPage).ends_with(".html") ? "" : "expected --attention-report to end in .html";
      });
  set.add("threads", threads, "N", "Threads (default: one for each processor)").upTo(cli::kMostThreads);
  compile.attention.declare(set, compile.target).needs("--attention-error", [this] {
    return attentionError.has_value();
  });
  compile.compression.declare(set);
  compile.compression.declareForms(set);
  compile.outputs.declareRemarks(set);
  compile.reading.declare(set);
  progress.declare(set, "No progress on standard error");
}

absl::StatusOr<Tokens> Tokens::read(const CalibrateOptions &options) {
  Tokens tokens;
  HONE_ASSIGN_OR_RETURN(tokens.ofInputs, cli::readCalibrationTokens(options.tokens, options.window, options.maxTokens));
  if (options.costTokens) {
    HONE_ASSIGN_OR_RETURN(tokens.ofCosts,
                          cli::readCalibrationTokens(options.tokens, options.window, *options.costTokens));
  }
  return tokens;
}

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
  for (auto &[param, reads] : findReads(module))
    if (getEncodingBlocker(cast<ParamOp>(param), reads).empty() || cast<ParamOp>(param).getTensorType().getEncoding())
      observed.weights.push_back(cast<ParamOp>(param).getSymName().str());
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.addPass(createObserveInputs({kEntry.str()}));
  if (failed(pm.run(module)))
    return failure();
  for (ObservedSite &site : listObservedSites(module))
    observed.sites.push_back({site.width, std::move(site.weights), std::move(site.scales)});
  if (observed.sites.empty())
    return emitError(module.getLoc()) << "nothing to observe: no linear layer of the model multiplies with a parameter";
  return success();
}

static LogicalResult checkRewrites(const CalibrateOptions &options, Location loc) {
  if (options.compile.compression.pruning.isStructured())
    return emitError(loc)
           << "unsupported --prune=structured before inputs are measured: layers of a smaller model have others";
  if (options.costTokens && options.compile.compression.isAsked())
    return emitError(loc)
           << "expected no --cost-tokens with --prune and --quantize: errors cost what they do in the model "
              "as it is; the costs in --calibration are kept";
  return success();
}

/// The costs in the statistics that the options name, which are those of the model as it is.
static FailureOr<std::vector<calibration::Cost>> keepCosts(const CalibrateOptions &options,
                                                           ArrayRef<std::string> weights, Location loc) {
  std::vector<calibration::Cost> costs;
  if (options.compile.compression.statistics.empty())
    return costs;
  auto statistics = compress::Statistics::open(options.compile.compression.statistics);
  if (failed(report(loc, statistics.status())))
    return failure();
  for (const std::string &weight : weights)
    if (auto cost = statistics->readCost(weight); statistics->hasCosts() && cost.ok())
      costs.push_back({weight, static_cast<float>(*cost)});
  return costs;
}

/// What errors cost on the tokens for that, or nothing where there are none.
static FailureOr<std::vector<calibration::Cost>> measureCosts(const CalibrateOptions &options, Tokens &tokens,
                                                              const std::string &artefact,
                                                              ArrayRef<std::string> weights,
                                                              const calibration::Statistics &statistics, Location loc) {
  if (!tokens.ofCosts)
    return keepCosts(options, weights, loc);
  auto predictions =
      cli::Predictions::create(artefact, std::move(*tokens.ofCosts), options.getThreads(), options.output);
  if (failed(report(loc, predictions.status())))
    return failure();
  return measureCosts(artefact, weights, statistics, *predictions, loc.getContext());
}

static LogicalResult measure(const CalibrateOptions &options, Tokens tokens, const std::string &artefact,
                             Observed observed, Location loc) {
  auto statistics = calibration::Statistics::create(options.output, std::move(observed.sites));
  if (!statistics.ok())
    return report(loc, statistics.status());
  if (failed(report(loc, cli::runCalibration(artefact, tokens.ofInputs, options.getThreads(), *statistics))))
    return failure();
  auto costs = measureCosts(options, tokens, artefact, observed.weights, *statistics, loc);
  if (failed(costs))
    return failure();
  auto count = static_cast<int64_t>(tokens.ofInputs.ids.size());
  return report(loc, statistics->write(count, observed.fingerprint, *costs));
}

static LogicalResult calibrate(const CalibrateOptions &options, MLIRContext *context) {
  if (options.integrates)
    return measurePqi({options.compile, options.tokens, options.output, options.window, options.maxTokens,
                       options.intervals.value_or(8), options.getThreads()},
                      context);
  AttentionMeasureOptions ofAttention = {options.compile, options.tokens,    options.output,
                                         options.window,  options.maxTokens, options.getThreads()};
  if (options.ranksKeys)
    return measureKeyImportance(ofAttention, context);
  if (options.attentionError)
    return measureAttentionThresholds(ofAttention, *options.attentionError, options.attentionPage, context);
  Location loc = FileLineColLoc::get(context, llvm::sys::path::filename(options.compile.input), 0, 0);
  if (failed(checkRewrites(options, loc)))
    return failure();
  absl::StatusOr<Tokens> tokens = Tokens::read(options);
  if (!tokens.ok())
    return report(loc, tokens.status());
  size_t count = tokens->ofInputs.ids.size();
  FailureOr<io::TemporaryPath> folder = makeFolderBeside(options.output, loc);
  if (failed(folder))
    return failure();
  Observed observed;
  CompileOptions compileOptions = options.compile;
  compileOptions.outputs.path = folder->path() + "/model.hone";
  compileOptions.otherInputs = {options.tokens};
  compileOptions.outputs.others = {options.output};
  compileOptions.rewrite = [&](ModuleOp module) { return observe(module, observed); };
  if (failed(compile(compileOptions, context)))
    return failure();
  size_t sites = observed.sites.size();
  if (failed(measure(options, std::move(*tokens), compileOptions.outputs.path, std::move(observed), loc)))
    return failure();
  llvm::outs() << "statistics of " << sites << " inputs on " << count << " tokens\n";
  return success();
}

static int runCalibrate(CalibrateOptions &options) {
  if (failed(findModel(options.compile.input)))
    return 1;
  options.compile.reading.limitProcess();
  options.progress.apply();
  return withContext(options.compile.input, [&](MLIRContext &context) { return calibrate(options, &context); });
}

extern const Command kCalibrateCommand =
    makeCommand<CalibrateOptions, runCalibrate>("calibrate", "measure what the layers of a language model read");

} // namespace hone
