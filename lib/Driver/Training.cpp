// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Training.h"

#include "CompileReport.h"
#include "hone/Export/Export.h"
#include "hone/cli/main.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hone {

/// Why a number cannot be what an option says; nothing where none was given.
static OptionRow::Check notNegative(const std::optional<double> &field, StringRef name) {
  return [&field, name]() -> std::string {
    if (!field || (*field >= 0 && std::isfinite(*field)))
      return "";
    return llvm::formatv("expected --{0} to be 0 or more, but got {1}", name, *field);
  };
}

static OptionRow::Check belowOne(const std::optional<double> &field, StringRef name) {
  return [&field, name]() -> std::string {
    if (!field || (*field >= 0 && *field < 1))
      return "";
    return llvm::formatv("expected --{0} to be at least 0 and below 1, but got {1}", name, *field);
  };
}

/// A number with all digits that tell it from others.
static std::string describe(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", number);
  return text;
}

void TrainingOptions::declareData(OptionSet &set, StringRef validHelp) {
  set.add("data", data, "FILE",
          "Tokens to train on: .npy of token ids (uint16, int32 or int64, of shape [n]), or text; may be given several "
          "times")
      .required();
  set.add("valid", valid, "FILE", validHelp);
  set.add("tokenizer", tokenizer, "FILE", "The tokenizer.json of the model, for data that is text");
}

void TrainingOptions::declareWindows(OptionSet &set) {
  set.add("context", context, "N", "Tokens a window; windows do not overlap (default: 512)").upTo();
  set.add("batch", batch, "N", "Windows a step (default: 8)").upTo();
  set.add("seed", seed, "N", "Number that the order of windows follows from (default: 0)").upTo();
  set.add("threads", threads, "N", "Threads (default: one for each processor)").upTo(cli::kMostThreads);
}

void TrainingOptions::declareOptimizer(OptionSet &set) {
  auto isAdamW = [this] { return optimizer == "adamw"; };
  set.add("learning-rate", learningRate, "X", "The largest learning rate (default: 1e-4)")
      .check(notNegative(learningRate, "learning-rate"));
  set.add("warmup", warmup, "N", "Steps in which the learning rate grows (default: 0)").upTo();
  set.add("schedule", schedule, "KIND", "The learning rate after that: cosine, which falls to 0 (default), or constant")
      .oneOf({"cosine", "constant"});
  set.add("optimizer", optimizer, "NAME", "How parameters are updated: sgd, momentum or adamw (default)")
      .oneOf({"sgd", "momentum", "adamw"});
  set.add("weight-decay", weightDecay, "X", "Weight decay of matrices (default: 0)")
      .check(notNegative(weightDecay, "weight-decay"));
  set.add("clip-norm", clipNorm, "X", "Largest norm of the gradients; 0: any (default: 1)")
      .check(notNegative(clipNorm, "clip-norm"));
  set.add("momentum", momentum, "X", "What momentum keeps of the velocity (default: 0.9)")
      .needs("--optimizer=momentum", [this] { return optimizer == "momentum"; })
      .check(belowOne(momentum, "momentum"));
  set.add("beta1", beta1, "X", "What adamw keeps of the mean of gradients (default: 0.9)")
      .needs("--optimizer=adamw", isAdamW)
      .check(belowOne(beta1, "beta1"));
  set.add("beta2", beta2, "X", "What adamw keeps of the mean of their squares (default: 0.999)")
      .needs("--optimizer=adamw", isAdamW)
      .check(belowOne(beta2, "beta2"));
  set.add("epsilon", epsilon, "X", "What adamw adds to the root of that mean (default: 1e-8)")
      .needs("--optimizer=adamw", isAdamW)
      .check(notNegative(epsilon, "epsilon"));
}

std::vector<std::string> TrainingOptions::listFiles() const {
  std::vector<std::string> files = data;
  files.insert(files.end(), valid.begin(), valid.end());
  files.push_back(tokenizer);
  return files;
}

AddOptimizerOptions TrainingOptions::getOptimizer() const {
  AddOptimizerOptions options;
  options.optimizer = optimizer;
  options.weightDecay = weightDecay.value_or(options.weightDecay);
  options.maxNorm = clipNorm.value_or(1);
  options.keepZeros = keepZeros;
  options.evaluate = !valid.empty();
  options.momentum = momentum.value_or(options.momentum);
  options.beta1 = beta1.value_or(options.beta1);
  options.beta2 = beta2.value_or(options.beta2);
  options.epsilon = epsilon.value_or(options.epsilon);
  return options;
}

cli::TuningOptions TrainingOptions::getTuning(int64_t steps) const {
  cli::TuningOptions options;
  options.steps = steps;
  options.batch = batch;
  options.learningRate = learningRate.value_or(1e-4);
  options.warmup = warmup.value_or(0);
  options.schedule = schedule == "constant" ? cli::RateSchedule::Constant : cli::RateSchedule::Cosine;
  options.seed = static_cast<uint64_t>(seed.value_or(0));
  options.threads = static_cast<int>(threads.value_or(0));
  options.validEvery = steps;
  return options;
}

std::string TrainingOptions::describeRun(StringRef model, const cli::TuningData &tokens, int64_t steps,
                                         const TargetOptions &target) const {
  AddOptimizerOptions chosen = getOptimizer();
  cli::TuningOptions run = getTuning(steps);
  return llvm::formatv(
      "model {0}, data {1:x-8}, context {2}, batch {3}, steps {4}, seed {5}, learning rate {6}, warmup {7}, {8}, "
      "{9}, weight decay {10}, clip norm {11}, momentum {12}, beta1 {13}, beta2 {14}, epsilon {15}{16}{17}",
      model, tokens.sum(), context, batch, steps, run.seed, describe(run.learningRate), run.warmup, schedule, optimizer,
      describe(chosen.weightDecay), describe(chosen.maxNorm), describe(chosen.momentum), describe(chosen.beta1),
      describe(chosen.beta2), describe(chosen.epsilon), keepZeros ? ", keep zeros" : "",
      target.isCuda() ? ", target cuda, chip " + target.chip : "");
}

absl::StatusOr<TrainingData> TrainingData::read(const TrainingOptions &options) {
  TrainingData data;
  HONE_ASSIGN_OR_RETURN(data.tokens, cli::readTuningData(options.data, options.tokenizer, options.context));
  if (!options.valid.empty()) {
    HONE_ASSIGN_OR_RETURN(data.valid, cli::readTuningData(options.valid, options.tokenizer, options.context));
  }
  return data;
}

std::vector<ParamOp> listTrained(ModuleOp module) {
  std::vector<ParamOp> trained;
  for (auto param : module.getOps<ParamOp>())
    if (isa<FloatType>(param.getTensorType().getElementType()) && !SymbolTable::symbolKnownUseEmpty(param, module))
      trained.push_back(param);
  return trained;
}

FailureOr<TrainingStep> compileTrainingStep(CompileOptions compile, const TrainingOptions &options,
                                            const io::TemporaryPath &folder, MLIRContext *context) {
  TrainingStep step;
  step.artefact = folder.path() + "/step.hone";
  compile.outputs.path = step.artefact;
  compile.gradients = {"parameters", "cross-entropy", options.getOptimizer()};
  compile.rewrite = [&step, more = std::move(compile.rewrite)](ModuleOp module) -> LogicalResult {
    FailureOr<std::string> fingerprint = keepDifferentiated(module);
    if (failed(fingerprint))
      return failure();
    step.fingerprint = std::move(*fingerprint);
    for (ParamOp param : listTrained(module))
      step.parameters += param.getTensorType().getNumElements();
    return more ? more(module) : success();
  };
  if (failed(hone::compile(compile, context)))
    return failure();
  return step;
}

LogicalResult pruneModel(const CompileOptions &compile, ModuleOp module, const std::string &path) {
  CompileOptions pruned = compile;
  pruned.outputs.path = path;
  ReportOptions noReport;
  noReport.summary = false;
  if (failed(rewriteWithReport(pruned, noReport, module)))
    return failure();
  return exportOnnx(module, path, [](int64_t, int64_t, StringRef) {});
}

absl::StatusOr<cli::TuningResult> measureTraining(const TrainingStep &step, const TrainingOptions &options,
                                                  const TrainingData &data, int64_t steps) {
  auto ignore = [](const std::string &, std::span<const char>) { return absl::OkStatus(); };
  return cli::runTuning(step.artefact, data.tokens, data.getValid(), options.getTuning(steps), ignore);
}

} // namespace hone
