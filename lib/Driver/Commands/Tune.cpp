// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone tune`: goes on training a language model (docs/training.md), which it may prune before. Compiles a step of training beside the
// output, runs it, and writes the file of the model again, with other weights.

#include "Command.h"
#include "ModelFolder.h"
#include "Options/Progress.h"
#include "Outputs.h"
#include "Rewrites.h"
#include "Training.h"
#include "hone/Artefact/Artefact.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Dialect/Hone/ScratchBytes.h"
#include "hone/Export/Export.h"
#include "hone/Transforms/Passes.h"
#include "hone/cli/plan.h"
#include "hone/io/file.h"
#include "hone/io/pages.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hone {

namespace {
struct TuneOptions {
  explicit TuneOptions(OptionSet &set);

  cli::TuningOptions getTuning() const;
  PruningOptions &pruning() { return compile.compression.pruning; }

  CompileOptions compile;
  TrainingOptions training;
  std::string log, checkpoint, points, sparseStart;
  std::vector<std::string> profile;
  int64_t steps = 0;
  std::optional<int64_t> checkpointEvery, validEvery;
  std::optional<double> targetLoss;
  ProgressOptions progress;

private:
  void declarePruning(OptionSet &set);
  void declareSparseMode(OptionSet &set);
};
} // namespace

TuneOptions::TuneOptions(OptionSet &set) {
  set.addInput(compile.input, "MODEL.onnx|FOLDER");
  training.declareData(set,
                       "Tokens or text to measure the loss on beside that, as for --data; may be given several times");
  set.add("valid-every", validEvery, "N",
          "Steps from one measurement to the next (default: before the first step and after the last one alone)")
      .upTo()
      .needs("--valid", [this] { return !training.valid.empty(); });
  set.add("o", compile.outputs.path, "FILE.onnx", "Write the tuned model to FILE").required();
  set.add("steps", steps, "N", "Steps to train").upTo().required();
  training.declareWindows(set);
  training.declareOptimizer(set);
  set.add("keep-zeros", training.keepZeros,
          "Elements of matrices that are 0 stay 0: those that were pruned (default with --prune=N:M)");
  declarePruning(set);
  declareSparseMode(set);
  training.declareDistillation(set);
  compile.attention.declare(set, compile.target).needs("--target=cpu", [this] { return !compile.target.isCuda(); });
  compile.target.declareDevice(set);
  set.add("log", log, "FILE.jsonl", "Write a line of JSON for each step to FILE");
  set.add(
      "profile", profile, "FILE.json",
      "Write what every call and kernel took, as a trace for Perfetto or chrome://tracing; '-' prints the sums as a "
      "table on stderr instead; may be given several times");
  set.add("checkpoint", checkpoint, "FILE.safetensors",
          "Write the state of the training to FILE now and then, and go on from there where it exists");
  set.add("checkpoint-every", checkpointEvery, "N", "Steps from one checkpoint to the next (default: 100)")
      .upTo()
      .needs("--checkpoint", [this] { return !checkpoint.empty(); });
  compile.reading.declare(set);
  progress.declare(set, "No progress on standard error");
}

void TuneOptions::declarePruning(OptionSet &set) {
  auto isPlanned = [this] { return pruning().isPlanned(); };
  pruning().declare(set, "N:M|structured|auto",
                    "Prune the model before, as 'hone export' does; auto: as much as the P2 law says that --steps can "
                    "make good, by --points and --target-loss");
  set.add("calibration", compile.compression.statistics, "FILE",
          "Statistics of the model that hone calibrate wrote, for methods of --prune that use them")
      .needs("--prune", [this] { return pruning().isAsked(); });
  set.add("points", points, "FILE.jsonl", "Measured losses of pruned models, as 'hone plan --probe' writes them")
      .needs("--prune=auto", isPlanned);
  set.add("target-loss", targetLoss, "L", "The loss on --valid that --prune=auto is to reach")
      .needs("--prune=auto", isPlanned)
      .check([this] { return targetLoss && *targetLoss > 0 ? "" : "expected --target-loss to be above 0"; });
}

void TuneOptions::declareSparseMode(OptionSet &set) {
  set.add(
         "sparse-mode", training.sparseMode, "MODE",
         "How a model of --prune=N:M is trained: fixed, with the zeros that pruning makes (default), or with a pattern "
         "that may change until the end: sr-ste, ast, cast or s-ste")
      .oneOf({"fixed", "sr-ste", "ast", "cast", "s-ste"})
      .needs("--prune=N:M",
             [this] { return pruning().isAsked() && !pruning().isStructured() && !pruning().isPlanned(); })
      .check([this] {
        bool chooses = training.sparseMode != "fixed";
        return training.keepZeros && chooses
                   ? "expected --keep-zeros or --sparse-mode=" + training.sparseMode + ", but got both"
                   : "";
      })
      .check([this] {
        bool isOther = training.rampsMaskDecay() && training.optimizer != "adamw";
        return isOther ? "expected --optimizer=adamw with --sparse-mode=" + training.sparseMode : "";
      });
  set.add("sparse-start", sparseStart, "WEIGHTS",
          "What weights are before the first step with --sparse-mode: pruned (default), or dense (default of cast)")
      .oneOf({"pruned", "dense"})
      .needs("--sparse-mode=sr-ste, ast, cast or s-ste",
             [this] { return !training.sparseMode.empty() && training.sparseMode != "fixed"; });
  set.add("mask-decay", training.maskDecay, "X",
          "What sr-ste and ast add of an element that is not kept to its gradient (default: 6e-5), or what cast makes "
          "of its mean (default: 4e-7)")
      .needs("--sparse-mode=sr-ste, ast or cast", [this] { return training.decaysMasked(); })
      .check([this]() -> std::string {
        if (!training.maskDecay || (*training.maskDecay >= 0 && std::isfinite(*training.maskDecay)))
          return "";
        return llvm::formatv("expected --mask-decay to be 0 or more, but got {0}", *training.maskDecay);
      });
  set.add("mask-decay-ramp", training.maskDecayRamp, "N",
          "Steps in which that of ast and cast grows from 0 (default: a quarter of --steps, of cast all)")
      .upTo()
      .needs("--sparse-mode=ast or cast", [this] { return training.rampsMaskDecay(); });
}

cli::TuningOptions TuneOptions::getTuning() const {
  cli::TuningOptions options = training.getTuning(steps);
  options.log = log;
  options.checkpoint = checkpoint;
  options.profile = profile;
  options.checkpointEvery = checkpointEvery.value_or(options.checkpointEvery);
  options.validEvery = validEvery.value_or(steps);
  return options;
}

/// The parameter `name` of the file, which has so many bytes.
static absl::StatusOr<ParamOp> findWeight(ModuleOp module, const std::string &name, uint64_t bytes) {
  auto param = module.lookupSymbol<ParamOp>(name);
  if (!param || param.getTensorType().getEncoding() || getDenseBytes(param.getTensorType()) != bytes)
    return io::invalid("cannot write the parameter '", name, "': the model's file has none of ", bytes,
                       " bytes with that name");
  return param;
}

/// Fails where the file has no place for what is trained.
static absl::Status checkWeights(ModuleOp module, const TrainingStep &step) {
  for (const auto &[name, bytes] : step.trained) {
    auto found = step.joined.find(name);
    std::vector<std::string> parts = found == step.joined.end() ? std::vector<std::string>{name} : found->second.names;
    for (const std::string &part : parts)
      HONE_RETURN_IF_ERROR(findWeight(module, part, bytes / parts.size()).status());
  }
  return absl::OkStatus();
}

static absl::Status replaceWeight(ModuleOp module, const std::string &name, std::span<const char> bytes) {
  HONE_ASSIGN_OR_RETURN(ParamOp param, findWeight(module, name, bytes.size()));
  param.setStorageAttr(makeResource(param.getTensorType(), {bytes.data(), bytes.size()}));
  return absl::OkStatus();
}

/// Gives a parameter of the step, which may be several of the file, other elements there.
static absl::Status replaceTrained(ModuleOp module, const TrainingStep &step, const std::string &name,
                                   std::span<const char> bytes) {
  auto found = step.joined.find(name);
  if (found == step.joined.end())
    return replaceWeight(module, name, bytes);
  const JoinedMatrices &joined = found->second;
  for (auto [part, elements] : llvm::zip_equal(joined.names, splitJoined(joined, bytes)))
    HONE_RETURN_IF_ERROR(replaceWeight(module, part, elements));
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
  std::vector<std::string> others = {options.log, options.checkpoint};
  llvm::append_range(others, options.profile);
  for (const std::string &other : others)
    if (!other.empty() && other != "-")
      options.compile.outputs.others.push_back(other);
  options.compile.otherInputs = options.training.listFiles();
  options.compile.otherInputs.push_back(options.points);
  return checkOutputs(options.compile, listInputs(options.compile, {module}), module.getLoc());
}

/// Decides how to prune by the points that the options name, in place of `auto`.
static FailureOr<cli::PlannedPruning> planPruning(TuneOptions &options, const TrainingData &data,
                                                  const io::TemporaryPath &folder, Location loc) {
  if (options.points.empty() || !options.targetLoss || !data.valid)
    return emitError(loc) << "expected --points, --target-loss and --valid with --prune=auto";
  CompileOptions dense = options.compile;
  dense.compression = {};
  TrainingOptions training = options.training;
  training.teacher = ""; // takes no part in what is measured
  FailureOr<TrainingStep> step = compileTrainingStep(dense, training, folder, loc.getContext());
  if (failed(step))
    return failure();
  auto measured = measureTraining(*step, options.training, data, /*steps=*/0);
  if (failed(report(loc, measured.status())))
    return failure();
  double loss = measured->validBefore;
  auto tokens = static_cast<double>(options.steps * options.training.tokensPerStep());
  auto planned =
      cli::planPruning(options.points, {static_cast<double>(step->parameters), loss, *options.targetLoss, tokens});
  if (failed(report(loc, planned.status())))
    return failure();
  options.pruning().pattern = planned->kind;
  if (options.pruning().isStructured())
    options.pruning().sparsity = llvm::formatv("{0:F6}", planned->rate);
  llvm::outs() << llvm::formatv("loss on --valid {0:F4} before pruning\nplanned: {1}, {2:P2} of the parameters\n", loss,
                                planned->kind, planned->rate);
  if (planned->isExtrapolated)
    emitWarning(loc) << "the model or --steps lie outside of the points: the P2 law is extrapolated";
  return *planned;
}

/// Prunes the model, and makes the file in `folder` that comes out the one to tune; or leaves that and knows which weights are pruned at
/// the end.
static LogicalResult prune(TuneOptions &options, const io::TemporaryPath &folder, OwningOpRef<ModuleOp> &module) {
  std::string path = folder.path() + "/pruned.onnx";
  FailureOr<std::vector<std::string>> pruned = pruneModel(options.compile, *module, path);
  if (failed(pruned))
    return failure();
  if (std::optional<compress::NmPattern> pattern = getNmPattern(options.pruning().pattern)) {
    TrainingOptions &training = options.training;
    training.keepZeros |= training.sparseMode.empty();
    training.kept = pattern->kept;
    training.width = pattern->width;
    if (!training.sparseMode.empty())
      training.sparse = std::move(*pruned);
    if (!training.sparseMode.empty() && training.sparse.empty())
      return emitError(module->getLoc()) << "expected weights that --prune prunes, with --sparse-mode";
  }
  StringRef start = options.sparseStart;
  if (start.empty())
    start = options.training.sparseMode == "cast" ? "dense" : "pruned";
  if (start == "pruned")
    options.compile.input = path;
  options.compile.compression = {};
  module = readModel(options.compile.input, module->getContext(), options.compile.reading);
  return success(static_cast<bool>(module));
}

/// Names the weights of the file, for them to be replaced.
static LogicalResult nameWeights(const TuneOptions &options, ModuleOp module) {
  MLIRContext *context = module.getContext();
  context->loadDialect<HoneDialect>();
  ScratchBytes::get(context).spillBeside(options.compile.outputs.path);
  PassManager pm(context, ModuleOp::getOperationName());
  pm.addPass(createNameConstants());
  return pm.run(module);
}

static void print(const cli::TuningResult &result, bool isValidated,
                  const std::optional<cli::PlannedPruning> &planned) {
  llvm::outs() << llvm::formatv("loss {0:F4} in the first step, {1:F4} in the last; {2:F0} tokens/s\n",
                                result.firstLoss, result.lastLoss, result.tokensPerSecond);
  if (isValidated)
    llvm::outs() << llvm::formatv("loss on --valid {0:F4} before, {1:F4} after\n", result.validBefore,
                                  result.validAfter);
  if (planned)
    llvm::outs() << llvm::formatv("predicted {0:F4} [{1:F4}, {2:F4}]; measured {3:P2} of that\n", planned->loss,
                                  planned->low, planned->high, result.validAfter / planned->loss);
}

static LogicalResult tune(TuneOptions &options, MLIRContext *context) {
  Location loc = FileLineColLoc::get(context, llvm::sys::path::filename(options.compile.input), 0, 0);
  auto data = TrainingData::read(options.training);
  if (failed(report(loc, data.status())))
    return failure();
  OwningOpRef<ModuleOp> module = readModel(options.compile.input, context, options.compile.reading);
  if (!module || failed(placeOutputs(options, *module)))
    return failure();
  FailureOr<io::TemporaryPath> folder = makeTemporaryFolder(options.compile.outputs.path, loc);
  if (failed(folder))
    return failure();
  std::optional<cli::PlannedPruning> planned;
  if (options.pruning().isPlanned()) {
    FailureOr<cli::PlannedPruning> plan = planPruning(options, *data, *folder, loc);
    if (failed(plan))
      return failure();
    planned = *plan;
  }
  if ((options.pruning().isAsked() && failed(prune(options, *folder, module))) || failed(nameWeights(options, *module)))
    return failure();
  FailureOr<TrainingStep> step = compileTrainingStep(options.compile, options.training, *folder, context);
  if (failed(step) || failed(report(loc, checkWeights(*module, *step))))
    return failure();
  io::trimHeap(); // of what compiling took
  auto receive = [&](const std::string &name, std::span<const char> bytes) {
    return replaceTrained(*module, *step, name, bytes);
  };
  cli::TuningOptions tuning = options.getTuning();
  tuning.run = options.training.describeRun(step->fingerprint, data->tokens, options.steps, options.compile.target);
  auto result = cli::runTuning(step->artefact, data->tokens, data->getValid(), tuning, receive);
  if (failed(report(loc, result.status())) ||
      failed(exportOnnx(*module, options.compile.outputs.path, [](int64_t, int64_t, StringRef) {})))
    return failure();
  print(*result, data->valid.has_value(), planned);
  return success();
}

static int runTune(TuneOptions &options) {
  if (failed(findModel(options.compile.input)) || failed(options.training.findTeacher(options.compile.input)))
    return 1;
  if (options.training.sparseMode == "fixed")
    options.training.sparseMode = ""; // the zeros that pruning makes
  options.compile.reading.limitProcess();
  options.progress.apply();
  return withContext(options.compile.input, [&](MLIRContext &context) { return tune(options, &context); });
}

extern const Command kTuneCommand = makeCommand<TuneOptions, runTune>("tune", "go on training a language model");

} // namespace hone
