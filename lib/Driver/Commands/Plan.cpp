// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone plan --probe`: prunes a language model at some rates and trains each on for some budgets of tokens, for the points that the P2 law is
// fitted to (docs/compression.md). Without --probe the command is the runtime's, which fits and plans.

#include "hone/cli/plan.h"
#include "Command.h"
#include "ModelFolder.h"
#include "Options/Progress.h"
#include "Rewrites.h"
#include "Training.h"
#include "hone/Artefact/Artefact.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/Report.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hone {

namespace {
struct ProbeOptions {
  explicit ProbeOptions(OptionSet &set);

  /// What is pruned at each of the rates, as --sparsity has it; an empty one with N:M.
  FailureOr<SmallVector<std::string>> listRates(Location loc) const;
  /// Steps of each of the budgets.
  FailureOr<SmallVector<int64_t>> listSteps(Location loc) const;
  /// What a probe of so many steps follows from.
  std::string describeRun(StringRef model, const TrainingData &data, StringRef rate, int64_t steps) const;
  const PruningOptions &pruning() const { return compile.compression.pruning; }

  CompileOptions compile;
  TrainingOptions training;
  bool probe = false;
  std::string rates, budgets, output;
  ProgressOptions progress;
};

/// The model before it is pruned.
struct Dense {
  std::string fingerprint;
  int64_t parameters = 0, zeros = 0;
  double loss = 0;
};

/// Takes the probes of one model, and writes each as soon as it is known.
class Prober {
public:
  Prober(const ProbeOptions &options, const TrainingData &data, std::set<std::string> known, MLIRContext *context)
      : options(options), data(data), known(std::move(known)), context(context),
        loc(FileLineColLoc::get(context, llvm::sys::path::filename(options.compile.input), 0, 0)) {}

  LogicalResult run();

private:
  FailureOr<TrainingStep> compileStep(const CompileOptions &compile, const io::TemporaryPath &folder, int64_t &zeros);
  LogicalResult measureDense();
  LogicalResult probe(StringRef rate, ArrayRef<int64_t> steps);
  LogicalResult train(const TrainingStep &step, double rate, int64_t steps, const std::string &run);

  const ProbeOptions &options;
  const TrainingData &data;
  std::set<std::string> known; // runs that the file has
  MLIRContext *context;
  Location loc;
  Dense dense;
};
} // namespace

ProbeOptions::ProbeOptions(OptionSet &set) {
  auto structured = [this] { return pruning().isStructured(); };
  set.addInput(compile.input, "MODEL.onnx|FOLDER");
  set.add("probe", probe, "Prune MODEL.onnx, train it on and measure its loss, for points to fit the law to")
      .required();
  training.declareData(set, "Tokens or text to measure the loss on, as for --data; may be given several times");
  set.add("o", output, "POINTS.jsonl", "Add the points to this file; those that it has are not measured again")
      .required();
  compile.compression.pruning.declarePattern(
      set, "N:M|structured",
      "Keep N of every M neighbouring inputs of weights, or 'structured': make the model smaller by each of --rates");
  set.add("rates", rates, "PERCENT%,...", "Shares of all parameters that go with --prune=structured, a model each")
      .needs("--prune=structured", structured);
  set.add("calibration", compile.compression.statistics, "FILE",
          "Statistics of the model that hone calibrate wrote, for methods of --prune that use them");
  set.add("budgets", budgets, "N,...", "Tokens to train each model on, from the pruned model on each time").required();
  training.declareWindows(set);
  training.declareOptimizer(set);
  training.declareDistillation(set);
  compile.reading.declare(set);
  progress.declare(set, "No progress on standard error");
}

FailureOr<SmallVector<std::string>> ProbeOptions::listRates(Location loc) const {
  if (!pruning().isStructured())
    return SmallVector<std::string>{""};
  SmallVector<std::string> list;
  for (StringRef word : llvm::split(rates, ',')) {
    std::optional<double> share = getShare(word);
    if (!share || !(*share > 0 && *share < 1))
      return emitError(loc) << "expected --rates to be shares of the parameters, such as 10%,25%, but got '" << word
                            << "'";
    list.push_back(word.str());
  }
  return list;
}

FailureOr<SmallVector<int64_t>> ProbeOptions::listSteps(Location loc) const {
  SmallVector<int64_t> list;
  for (StringRef word : llvm::split(budgets, ',')) {
    double tokens = 0;
    if (word.getAsDouble(tokens) || !(tokens >= static_cast<double>(training.tokensPerStep()) && tokens < 1e15))
      return emitError(loc) << "expected --budgets to be numbers of tokens, each at least a step of "
                            << training.tokensPerStep() << ", but got '" << word << "'";
    list.push_back(static_cast<int64_t>(tokens) / training.tokensPerStep());
  }
  return list;
}

std::string ProbeOptions::describeRun(StringRef model, const TrainingData &data, StringRef rate, int64_t steps) const {
  return llvm::formatv("{0}, validated on {1:x-8}, prune {2} {3} {4} {5}{6}",
                       training.describeRun(model, data.tokens, steps, compile.target), data.valid->sum(),
                       pruning().pattern, rate, pruning().method, pruning().parts,
                       compile.compression.statistics.empty() ? "" : ", with statistics");
}

/// Elements of f32 that are 0.
static LogicalResult countZeros(ModuleOp module, int64_t &zeros) {
  for (ParamOp param : listTrained(module)) {
    if (!param.getTensorType().getElementType().isF32())
      continue;
    FailureOr<std::vector<float>> elements = readStoredElements(param);
    if (failed(elements))
      return failure();
    zeros += llvm::count(*elements, 0.0F);
  }
  return success();
}

FailureOr<TrainingStep> Prober::compileStep(const CompileOptions &compile, const io::TemporaryPath &folder,
                                            int64_t &zeros) {
  CompileOptions counted = compile;
  counted.outputs.others = {options.output};
  counted.otherInputs = options.training.listFiles();
  if (!options.pruning().isStructured())
    counted.rewrite = [&](ModuleOp module) { return countZeros(module, zeros); };
  return compileTrainingStep(counted, options.training, folder, context);
}

LogicalResult Prober::measureDense() {
  FailureOr<io::TemporaryPath> folder = makeTemporaryFolder(options.output, loc);
  if (failed(folder))
    return failure();
  CompileOptions compile = options.compile;
  compile.compression = {};
  FailureOr<TrainingStep> step = compileStep(compile, *folder, dense.zeros);
  if (failed(step))
    return failure();
  auto measured = measureTraining(*step, options.training, data, /*steps=*/0);
  if (failed(report(loc, measured.status())))
    return failure();
  dense.fingerprint = step->fingerprint;
  dense.parameters = step->parameters;
  dense.loss = measured->validBefore;
  llvm::outs() << llvm::formatv("{0} parameters, loss {1:F4} before pruning\n", dense.parameters, dense.loss);
  return success();
}

LogicalResult Prober::train(const TrainingStep &step, double rate, int64_t steps, const std::string &run) {
  auto result = measureTraining(step, options.training, data, steps);
  if (failed(report(loc, result.status())))
    return failure();
  cli::ProbePoint point = {options.pruning().pattern,
                           static_cast<double>(dense.parameters),
                           rate,
                           static_cast<double>(steps * options.training.tokensPerStep()),
                           dense.loss,
                           result->validAfter,
                           run};
  llvm::outs() << llvm::formatv("{0}, {1:P2} of the parameters, {2} tokens: loss {3:F4}, {4:F4} before them\n",
                                point.kind, rate, static_cast<int64_t>(point.tokens), point.loss, result->validBefore);
  llvm::outs().flush();
  return report(loc, cli::addProbe(options.output, point));
}

LogicalResult Prober::probe(StringRef rate, ArrayRef<int64_t> steps) {
  auto runOf = [&](int64_t count) { return options.describeRun(dense.fingerprint, data, rate, count); };
  SmallVector<int64_t> missing;
  llvm::copy_if(steps, std::back_inserter(missing), [&](int64_t count) { return !known.contains(runOf(count)); });
  if (missing.empty())
    return success();
  FailureOr<io::TemporaryPath> folder = makeTemporaryFolder(options.output, loc);
  if (failed(folder))
    return failure();
  CompileOptions compile = options.compile;
  compile.compression.pruning.sparsity = rate.str();
  std::string path = folder->path() + "/pruned.onnx";
  OwningOpRef<ModuleOp> module = readModel(compile.input, context, compile.reading);
  if (!module || failed(pruneModel(compile, *module, path)))
    return failure();
  compile.input = path;
  compile.compression = {};
  int64_t zeros = 0;
  FailureOr<TrainingStep> step = compileStep(compile, *folder, zeros);
  if (failed(step))
    return failure();
  int64_t pruned = dense.parameters - step->parameters + zeros - dense.zeros;
  if (pruned <= 0)
    return emitError(loc) << "nothing to probe: no parameter of the model was pruned";
  double share = static_cast<double>(pruned) / static_cast<double>(dense.parameters);
  for (int64_t count : missing)
    if (failed(train(*step, share, count, runOf(count))))
      return failure();
  return success();
}

LogicalResult Prober::run() {
  FailureOr<SmallVector<std::string>> rates = options.listRates(loc);
  FailureOr<SmallVector<int64_t>> steps = options.listSteps(loc);
  if (failed(rates) || failed(steps) || failed(measureDense()))
    return failure();
  for (const std::string &rate : *rates)
    if (failed(probe(rate, *steps)))
      return failure();
  return success();
}

static LogicalResult probe(ProbeOptions &options, MLIRContext *context) {
  Location loc = FileLineColLoc::get(context, llvm::sys::path::filename(options.compile.input), 0, 0);
  if (!options.pruning().isAsked() || options.training.valid.empty())
    return emitError(loc) << "expected --prune and --valid with --probe: points are losses of pruned models on that";
  options.training.keepZeros = !options.pruning().isStructured();
  auto known = cli::readProbes(options.output);
  if (failed(report(loc, known.status())))
    return failure();
  auto data = TrainingData::read(options.training);
  if (failed(report(loc, data.status())))
    return failure();
  return Prober(options, *data, std::move(*known), context).run();
}

static int runProbe(ProbeOptions &options) {
  if (failed(findModel(options.compile.input)) || failed(options.training.findTeacher(options.compile.input)))
    return 1;
  options.compile.reading.limitProcess();
  options.progress.apply();
  return withContext(options.compile.input, [&](MLIRContext &context) { return probe(options, &context); });
}

/// The runtime plans; probes need a compiler.
static bool isForRuntime(ArrayRef<std::string> words) {
  return llvm::none_of(words, [](StringRef word) { return word == "--probe" || word == "-probe"; });
}

extern const Command kPlanCommand = makeCommand<ProbeOptions, runProbe>(
    "plan", "how much to prune and how long to train on, by the P2 law", isForRuntime);

} // namespace hone
