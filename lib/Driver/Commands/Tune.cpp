// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone tune`: goes on training a language model (docs/training.md). Compiles a step of training beside the output, runs it, and writes the
// file of the model again, with other weights.

#include "hone/cli/tune.h"
#include "Command.h"
#include "Compiler.h"
#include "Options/Progress.h"
#include "Outputs.h"
#include "hone/Artefact/Artefact.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Dialect/Hone/ScratchBytes.h"
#include "hone/Export/Export.h"
#include "hone/Transforms/Passes.h"
#include "hone/cli/main.h"
#include "hone/io/file.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hone {

namespace {
struct TuneOptions {
  explicit TuneOptions(OptionSet &set);

  /// Those of the steps, and of the optimizer.
  cli::TuningOptions getTuning() const;
  std::string describeRun(StringRef model, const cli::TuningData &tokens) const;
  AddOptimizerOptions getOptimizer() const;

  CompileOptions compile;
  std::vector<std::string> data, valid;
  std::string tokenizer, log, checkpoint;
  int64_t context = 512, steps = 0, batch = 8;
  std::string optimizer = "adamw", schedule = "cosine";
  std::optional<double> learningRate, weightDecay, clipNorm, momentum, beta1, beta2, epsilon;
  std::optional<int64_t> warmup, threads, seed, checkpointEvery, validEvery;
  bool keepZeros = false;
  ProgressOptions progress;

private:
  void declareSteps(OptionSet &set);
  void declareOptimizer(OptionSet &set);
  bool isAdamW() const { return optimizer == "adamw"; }
};
} // namespace

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

TuneOptions::TuneOptions(OptionSet &set) {
  set.addInput(compile.input, "MODEL.onnx");
  set.add("data", data, "FILE",
          "Tokens to train on: .npy of token ids (uint16, int32 or int64, of shape [n]), or text; may be given several "
          "times")
      .required();
  set.add("valid", valid, "FILE",
          "Tokens or text to measure the loss on beside that, as for --data; may be given several times");
  set.add("valid-every", validEvery, "N",
          "Steps from one measurement to the next (default: before the first step and after the last one alone)")
      .upTo()
      .needs("--valid", [this] { return !valid.empty(); });
  set.add("tokenizer", tokenizer, "FILE", "The tokenizer.json of the model, for data that is text");
  set.add("o", compile.outputs.path, "FILE.onnx", "Write the tuned model to FILE").required();
  declareSteps(set);
  declareOptimizer(set);
  set.add("log", log, "FILE.jsonl", "Write a line of JSON for each step to FILE");
  set.add("checkpoint", checkpoint, "FILE.safetensors",
          "Write the state of the training to FILE now and then, and go on from there where it exists");
  set.add("checkpoint-every", checkpointEvery, "N", "Steps from one checkpoint to the next (default: 100)")
      .upTo()
      .needs("--checkpoint", [this] { return !checkpoint.empty(); });
  set.add("threads", threads, "N", "Threads (default: one for each processor)").upTo(cli::kMostThreads);
  compile.reading.declare(set);
  progress.declare(set, "No progress on standard error");
}

void TuneOptions::declareSteps(OptionSet &set) {
  set.add("context", context, "N", "Tokens a window; windows do not overlap (default: 512)").upTo();
  set.add("batch", batch, "N", "Windows a step (default: 8)").upTo();
  set.add("steps", steps, "N", "Steps to train").upTo().required();
  set.add("learning-rate", learningRate, "X", "The largest learning rate (default: 1e-4)")
      .check(notNegative(learningRate, "learning-rate"));
  set.add("warmup", warmup, "N", "Steps in which the learning rate grows (default: 0)").upTo();
  set.add("schedule", schedule, "KIND", "The learning rate after that: cosine, which falls to 0 (default), or constant")
      .oneOf({"cosine", "constant"});
  set.add("seed", seed, "N", "Number that the order of windows follows from (default: 0)").upTo();
}

void TuneOptions::declareOptimizer(OptionSet &set) {
  set.add("optimizer", optimizer, "NAME", "How parameters are updated: sgd, momentum or adamw (default)")
      .oneOf({"sgd", "momentum", "adamw"});
  set.add("weight-decay", weightDecay, "X", "Weight decay of matrices (default: 0)")
      .check(notNegative(weightDecay, "weight-decay"));
  set.add("clip-norm", clipNorm, "X", "Largest norm of the gradients; 0: any (default: 1)")
      .check(notNegative(clipNorm, "clip-norm"));
  set.add("keep-zeros", keepZeros, "Elements of matrices that are 0 stay 0: those that were pruned");
  set.add("momentum", momentum, "X", "What momentum keeps of the velocity (default: 0.9)")
      .needs("--optimizer=momentum", [this] { return optimizer == "momentum"; })
      .check(belowOne(momentum, "momentum"));
  set.add("beta1", beta1, "X", "What adamw keeps of the mean of gradients (default: 0.9)")
      .needs("--optimizer=adamw", [this] { return isAdamW(); })
      .check(belowOne(beta1, "beta1"));
  set.add("beta2", beta2, "X", "What adamw keeps of the mean of their squares (default: 0.999)")
      .needs("--optimizer=adamw", [this] { return isAdamW(); })
      .check(belowOne(beta2, "beta2"));
  set.add("epsilon", epsilon, "X", "What adamw adds to the root of that mean (default: 1e-8)")
      .needs("--optimizer=adamw", [this] { return isAdamW(); })
      .check(notNegative(epsilon, "epsilon"));
}

AddOptimizerOptions TuneOptions::getOptimizer() const {
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

cli::TuningOptions TuneOptions::getTuning() const {
  cli::TuningOptions options;
  options.steps = steps;
  options.batch = batch;
  options.learningRate = learningRate.value_or(1e-4);
  options.warmup = warmup.value_or(0);
  options.schedule = schedule == "constant" ? cli::RateSchedule::Constant : cli::RateSchedule::Cosine;
  options.seed = static_cast<uint64_t>(seed.value_or(0));
  options.threads = static_cast<int>(threads.value_or(0));
  options.log = log;
  options.checkpoint = checkpoint;
  options.checkpointEvery = checkpointEvery.value_or(options.checkpointEvery);
  options.validEvery = validEvery.value_or(steps);
  return options;
}

/// All that the bits of a training follow from, but for threads.
std::string TuneOptions::describeRun(StringRef model, const cli::TuningData &tokens) const {
  AddOptimizerOptions chosen = getOptimizer();
  cli::TuningOptions run = getTuning();
  return llvm::formatv(
      "model {0}, data {1:x-8}, context {2}, batch {3}, steps {4}, seed {5}, learning rate {6}, warmup {7}, {8}, "
      "{9}, weight decay {10}, clip norm {11}, momentum {12}, beta1 {13}, beta2 {14}, epsilon {15}{16}",
      model, tokens.sum(), context, batch, steps, run.seed, describe(run.learningRate), run.warmup, schedule, optimizer,
      describe(chosen.weightDecay), describe(chosen.maxNorm), describe(chosen.momentum), describe(chosen.beta1),
      describe(chosen.beta2), describe(chosen.epsilon), keepZeros ? ", keep zeros" : "");
}

/// Compiles @train_step into `folder`; returns where it is. `fingerprint` becomes that of the model.
static FailureOr<std::string> compileStep(const TuneOptions &options, const io::TemporaryPath &folder,
                                          std::string &fingerprint, MLIRContext *context) {
  CompileOptions compile = options.compile;
  compile.outputs.path = folder.path() + "/step.hone";
  compile.gradients = {"parameters", "cross-entropy", options.getOptimizer()};
  compile.rewrite = [&](ModuleOp module) -> LogicalResult {
    FailureOr<std::string> found = keepDifferentiated(module);
    if (succeeded(found))
      fingerprint = std::move(*found);
    return found;
  };
  if (failed(hone::compile(compile, context)))
    return failure();
  return compile.outputs.path;
}

/// The model of the file, for its weights to be replaced.
static OwningOpRef<ModuleOp> readForExport(const TuneOptions &options, MLIRContext *context) {
  OwningOpRef<ModuleOp> module = readModel(options.compile.input, context, options.compile.reading);
  if (!module)
    return {};
  context->loadDialect<HoneDialect>();
  ScratchBytes::get(context).spillBeside(options.compile.outputs.path);
  PassManager pm(context, ModuleOp::getOperationName());
  pm.addPass(createNameConstants());
  return succeeded(pm.run(*module)) ? std::move(module) : OwningOpRef<ModuleOp>();
}

/// Gives the parameter `name` of the file other elements.
static absl::Status replaceWeight(ModuleOp module, const std::string &name, std::span<const char> bytes) {
  auto param = module.lookupSymbol<ParamOp>(name);
  if (!param || param.getTensorType().getEncoding() || getDenseBytes(param.getTensorType()) != bytes.size())
    return io::invalid("cannot write the parameter '", name, "': the model's file has none of ", bytes.size(),
                       " bytes with that name");
  param.setStorageAttr(makeResource(param.getTensorType(), {bytes.data(), bytes.size()}));
  return absl::OkStatus();
}

/// Says where the files go, and that they are none of those that are read. The second one lies beside the first one, and not beside a link
/// to it.
static LogicalResult placeOutputs(TuneOptions &options, ModuleOp module) {
  auto place = io::followLinks(options.compile.outputs.path);
  if (failed(report(module.getLoc(), place.status())))
    return failure();
  options.compile.outputs.path = *place;
  options.compile.outputs.others = {*place + kDataEnding.str()};
  for (const std::string &other : {options.log, options.checkpoint})
    if (!other.empty())
      options.compile.outputs.others.push_back(other);
  options.compile.otherInputs = options.data;
  llvm::append_range(options.compile.otherInputs, options.valid);
  options.compile.otherInputs.push_back(options.tokenizer);
  return checkOutputs(options.compile, listInputs(options.compile, {module}), module.getLoc());
}

static LogicalResult tune(TuneOptions &options, MLIRContext *context) {
  Location loc = FileLineColLoc::get(context, llvm::sys::path::filename(options.compile.input), 0, 0);
  auto data = cli::readTuningData(options.data, options.tokenizer, options.context);
  if (failed(report(loc, data.status())))
    return failure();
  std::optional<cli::TuningData> valid;
  if (!options.valid.empty()) {
    auto read = cli::readTuningData(options.valid, options.tokenizer, options.context);
    if (failed(report(loc, read.status())))
      return failure();
    valid = std::move(*read);
  }
  OwningOpRef<ModuleOp> module = readForExport(options, context);
  if (!module || failed(placeOutputs(options, *module)))
    return failure();
  FailureOr<io::TemporaryPath> folder = makeTemporaryFolder(options.compile.outputs.path, loc);
  if (failed(folder))
    return failure();
  std::string fingerprint;
  FailureOr<std::string> artefact = compileStep(options, *folder, fingerprint, context);
  if (failed(artefact))
    return failure();
  auto receive = [&](const std::string &name, std::span<const char> bytes) {
    return replaceWeight(*module, name, bytes);
  };
  cli::TuningOptions tuning = options.getTuning();
  tuning.run = options.describeRun(fingerprint, *data);
  auto result = cli::runTuning(*artefact, *data, valid ? &*valid : nullptr, tuning, receive);
  if (failed(report(loc, result.status())) ||
      failed(exportOnnx(*module, options.compile.outputs.path, [](int64_t, int64_t, StringRef) {})))
    return failure();
  llvm::outs() << llvm::formatv("loss {0:F4} in the first step, {1:F4} in the last; {2:F0} tokens/s\n",
                                result->firstLoss, result->lastLoss, result->tokensPerSecond);
  if (valid)
    llvm::outs() << llvm::formatv("loss on --valid {0:F4} before, {1:F4} after\n", result->validBefore,
                                  result->validAfter);
  return success();
}

static int runTune(TuneOptions &options) {
  options.compile.reading.limitProcess();
  options.progress.apply();
  return withContext(options.compile.input, [&](MLIRContext &context) { return tune(options, &context); });
}

extern const Command kTuneCommand = makeCommand<TuneOptions, runTune>("tune", "go on training a language model");

} // namespace hone
