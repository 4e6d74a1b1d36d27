// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Training.h"

#include "CompressionRecord.h"
#include "ModelFolder.h"
#include "ModelSymbols.h"
#include "RewriteOnnx.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Onnx/OnnxDescription.h"
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

/// What of the loss is the divergence from a teacher, and at which temperature (Huang et al. 2024, for GPT-2).
static constexpr double kDistillWeight = 0.67, kTemperature = 2;
/// What masked decay adds of an element to its gradient (Hu et al. 2024, for GPT-2), and the part of the steps in which ast's grows.
static constexpr double kMaskDecayOfGpt2 = 6e-5;
/// What cast makes of a mean of gradients (Huang et al. 2025, for LLaMA2-7B).
static constexpr double kMaskDecayOfCast = 4e-7;
static constexpr int64_t kRampParts = 4;
/// What muon keeps of the velocity (Jordan et al. 2024).
static constexpr double kMuonMomentum = 0.95;
/// The teacher that the model itself is.
static constexpr llvm::StringLiteral kDense = "dense";
/// What a teacher is called in the module of its student.
static constexpr llvm::StringLiteral kTeacher = "teacher";

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
  set.add("accumulate", accumulate, "N", "Batches whose gradients a step takes the mean of (default: 1)").upTo();
  set.add("seed", seed, "N", "Number that the order of windows follows from (default: 0)").upTo();
  set.add(
         "precision", precision, "TYPE",
         "What factors of products are rounded to: f32 (default), or bf16, where sums, parameters and moments stay f32")
      .oneOf({"f32", "bf16"});
  set.add("threads", threads, "N", "Threads (default: one for each processor)").upTo(cli::kMostThreads);
}

void TrainingOptions::declareOptimizer(OptionSet &set) {
  auto isAdamW = [this] { return optimizer == "adamw" || optimizer == "muon"; };
  set.add("learning-rate", learningRate, "X", "The largest learning rate (default: 1e-4)")
      .check(notNegative(learningRate, "learning-rate"));
  set.add("warmup", warmup, "N", "Steps in which the learning rate grows (default: 0)").upTo();
  set.add("schedule", schedule, "KIND", "The learning rate after that: cosine, which falls to 0 (default), or constant")
      .oneOf({"cosine", "constant"});
  set.add("optimizer", optimizer, "NAME",
          "How parameters are updated: sgd, momentum, adamw (default), or muon, which updates all but hidden matrices "
          "as adamw")
      .oneOf({"sgd", "momentum", "adamw", "muon"});
  set.add("weight-decay", weightDecay, "X", "Weight decay of matrices (default: 0)")
      .check(notNegative(weightDecay, "weight-decay"));
  set.add("clip-norm", clipNorm, "X", "Largest norm of the gradients; 0: any (default: 1)")
      .check(notNegative(clipNorm, "clip-norm"));
  set.add("momentum", momentum, "X", "What momentum and muon keep of the velocity (default: 0.9, of muon 0.95)")
      .needs("--optimizer=momentum or muon", [this] { return optimizer == "momentum" || optimizer == "muon"; })
      .check(belowOne(momentum, "momentum"));
  set.add("beta1", beta1, "X", "What adamw keeps of the mean of gradients (default: 0.9)")
      .needs("--optimizer=adamw or muon", isAdamW)
      .check(belowOne(beta1, "beta1"));
  set.add("beta2", beta2, "X", "What adamw keeps of the mean of their squares (default: 0.999)")
      .needs("--optimizer=adamw or muon", isAdamW)
      .check(belowOne(beta2, "beta2"));
  set.add("epsilon", epsilon, "X", "What adamw adds to the root of that mean (default: 1e-8)")
      .needs("--optimizer=adamw or muon", isAdamW)
      .check(notNegative(epsilon, "epsilon"));
}

void TrainingOptions::declareDistillation(OptionSet &set) {
  auto isDistilled = [this] { return !teacher.empty(); };
  set.add("teacher", teacher, "MODEL.onnx|FOLDER|dense",
          "Distill from this model of the same tokens; dense: the model before --prune");
  set.add("distill-weight", distillWeight, "X",
          "With --teacher, the share of its part in the loss, from 0 to 1 (default: 0.67)")
      .needs("--teacher", isDistilled)
      .check([this]() -> std::string {
        if (!distillWeight || (*distillWeight >= 0 && *distillWeight <= 1))
          return "";
        return llvm::formatv("expected --distill-weight to be 0 to 1, but got {0}", *distillWeight);
      });
  set.add("temperature", temperature, "T", "With --teacher, what logits are divided by for that part (default: 2)")
      .needs("--teacher", isDistilled)
      .check([this]() -> std::string {
        if (!temperature || (*temperature > 0 && std::isfinite(*temperature)))
          return "";
        return llvm::formatv("expected --temperature to be above 0, but got {0}", *temperature);
      });
  set.add("feature-weight", featureWeight, "X",
          "With --teacher, the weight in the loss of the error of hidden states (default: 0)")
      .needs("--teacher", isDistilled)
      .check(notNegative(featureWeight, "feature-weight"));
}

LogicalResult TrainingOptions::findTeacher(StringRef model) {
  if (teacher == kDense)
    teacher = model.str();
  return teacher.empty() ? success() : findModel(teacher);
}

std::vector<std::string> TrainingOptions::listFiles() const {
  std::vector<std::string> files = data;
  files.insert(files.end(), valid.begin(), valid.end());
  files.insert(files.end(), {tokenizer, teacher});
  return files;
}

double TrainingOptions::getMaskDecay() const {
  return maskDecay.value_or(sparseMode == "cast" ? kMaskDecayOfCast : kMaskDecayOfGpt2);
}

AddOptimizerOptions TrainingOptions::getOptimizer() const {
  AddOptimizerOptions options;
  options.optimizer = optimizer;
  options.weightDecay = weightDecay.value_or(options.weightDecay);
  options.maxNorm = clipNorm.value_or(1);
  options.roundGradients = precision == "bf16";
  options.keepZeros = keepZeros;
  options.sparseMode = sparseMode;
  options.sparse = llvm::to_vector(sparse);
  options.n = kept;
  options.m = width;
  if (sparseMode == "cast")
    options.maskDecay = getMaskDecay();
  options.accumulate = accumulate;
  options.evaluate = !valid.empty();
  options.momentum = momentum.value_or(optimizer == "muon" ? kMuonMomentum : options.momentum);
  options.beta1 = beta1.value_or(options.beta1);
  options.beta2 = beta2.value_or(options.beta2);
  options.epsilon = epsilon.value_or(options.epsilon);
  return options;
}

cli::TuningOptions TrainingOptions::getTuning(int64_t steps) const {
  cli::TuningOptions options;
  options.steps = steps;
  options.batch = batch;
  options.accumulate = accumulate;
  options.learningRate = learningRate.value_or(1e-4);
  options.warmup = warmup.value_or(0);
  options.schedule = schedule == "constant" ? cli::RateSchedule::Constant : cli::RateSchedule::Cosine;
  options.seed = static_cast<uint64_t>(seed.value_or(0));
  options.threads = static_cast<int>(threads.value_or(0));
  options.validEvery = steps;
  options.projects = !sparseMode.empty();
  bool isCast = sparseMode == "cast";
  if (decaysMasked())
    options.maskDecay = isCast ? 1 : getMaskDecay(); // of cast the share of the whole, which the step knows
  if (rampsMaskDecay())
    options.maskDecayRamp = maskDecayRamp.value_or(isCast ? steps : steps / kRampParts);
  return options;
}

/// What is not said of trainings that do without.
static std::string describeMethods(const TrainingOptions &options, const cli::TuningOptions &run) {
  std::string text;
  if (options.precision != "f32")
    text += llvm::formatv(", precision {0}", options.precision);
  if (options.accumulate > 1)
    text += llvm::formatv(", accumulate {0}", options.accumulate);
  if (!options.sparseMode.empty())
    text += llvm::formatv(", {0} {1}:{2} of {3} weights", options.sparseMode, options.kept, options.width,
                          options.sparse.size());
  if (run.maskDecay)
    text += llvm::formatv(", mask decay {0} after {1} steps", describe(options.getMaskDecay()), run.maskDecayRamp);
  if (!options.teacher.empty())
    text +=
        llvm::formatv(", distill weight {0}, temperature {1}", describe(options.distillWeight.value_or(kDistillWeight)),
                      describe(options.temperature.value_or(kTemperature)));
  if (options.featureWeight.value_or(0) > 0)
    text += ", feature weight " + describe(*options.featureWeight);
  return text;
}

std::string TrainingOptions::describeRun(StringRef model, const cli::TuningData &tokens, int64_t steps,
                                         const TargetOptions &target) const {
  AddOptimizerOptions chosen = getOptimizer();
  cli::TuningOptions run = getTuning(steps);
  return llvm::formatv(
      "model {0}, data {1:x-8}, context {2}, batch {3}, steps {4}, seed {5}, learning rate {6}, warmup {7}, {8}, "
      "{9}, weight decay {10}, clip norm {11}, momentum {12}, beta1 {13}, beta2 {14}, epsilon {15}{16}{17}{18}",
      model, tokens.sum(), context, batch, steps, run.seed, describe(run.learningRate), run.warmup, schedule, optimizer,
      describe(chosen.weightDecay), describe(chosen.maxNorm), describe(chosen.momentum), describe(chosen.beta1),
      describe(chosen.beta2), describe(chosen.epsilon), keepZeros ? ", keep zeros" : "", describeMethods(*this, run),
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

/// Those of the floats that are trained.
static std::map<std::string, JoinedMatrices> listJoined(ModuleOp module) {
  std::map<std::string, JoinedMatrices> all;
  for (ParamOp param : listTrained(module)) {
    auto names = param->getAttrOfType<ArrayAttr>(kJoinedAttrName);
    auto stacked = dyn_cast<StackedAttr>(param.getStorage());
    if (!names || !stacked)
      continue;
    RankedTensorType type = stacked.getType();
    auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding());
    JoinedMatrices joined{{}, type.getDimSize(0), type.getDimSize(1), stored && stored.getTransposed()};
    for (StringRef name : names.getAsValueRange<StringAttr>())
      joined.names.push_back(name.str());
    all[param.getSymName().str()] = std::move(joined);
  }
  return all;
}

std::vector<std::string> splitJoined(const JoinedMatrices &joined, std::span<const char> bytes) {
  constexpr size_t width = sizeof(float);
  auto rows = static_cast<size_t>(joined.rows), columns = static_cast<size_t>(joined.columns);
  size_t size = rows * columns * width;
  std::string all(bytes.begin(), bytes.end());
  for (size_t begin = 0; joined.areTransposed && begin < bytes.size(); begin += size)
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column)
        std::memcpy(&all[begin + (column * rows + row) * width], &bytes[begin + (row * columns + column) * width],
                    width);
  std::vector<std::string> parts;
  size_t part = all.size() / joined.names.size();
  for (size_t begin = 0; begin < all.size(); begin += part)
    parts.push_back(all.substr(begin, part));
  return parts;
}

/// Adds the teacher to the module of its student; gives its fingerprint.
static FailureOr<std::string> addTeacher(ModuleOp student, const std::string &file, const ReadOptions &reading) {
  OwningOpRef<ModuleOp> teacher = readModel(file, student.getContext(), reading);
  if (!teacher || failed(runPhases(*teacher, "raise")))
    return failure();
  onnxir::dropDescriptions(*teacher);
  FailureOr<std::string> fingerprint = getFingerprint(*teacher);
  StringRef entry = teacher->lookupSymbol("forward") ? "forward" : "main";
  if (failed(fingerprint))
    return failure();
  if (!teacher->lookupSymbol(entry))
    return teacher->emitError() << "expected the teacher to have an entry";
  if (student.lookupSymbol(kTeacher))
    return student.emitError() << "expected a model without a symbol @" << kTeacher << " for --teacher";
  keepFunction(*teacher, entry);
  moveSymbols(student, *teacher, kTeacher, {{entry, kTeacher}}, /*sharesParameters=*/false);
  return fingerprint;
}

FailureOr<TrainingStep> compileTrainingStep(CompileOptions compile, const TrainingOptions &options,
                                            const io::TemporaryPath &folder, MLIRContext *context) {
  TrainingStep step;
  step.artefact = folder.path() + "/step.hone";
  compile.outputs.path = step.artefact;
  compile.sizes = {options.batch, options.context};
  compile.gradients.of = "parameters";
  compile.gradients.loss = "cross-entropy";
  compile.gradients.optimizer = options.getOptimizer();
  compile.gradients.roundsProducts = options.precision == "bf16";
  if (!options.teacher.empty())
    compile.gradients.distillation = {kTeacher.str(), options.distillWeight.value_or(kDistillWeight),
                                      options.temperature.value_or(kTemperature), options.featureWeight.value_or(0)};
  compile.rewrite = [&, more = std::move(compile.rewrite)](ModuleOp module) -> LogicalResult {
    FailureOr<std::string> fingerprint = keepDifferentiated(module);
    if (failed(fingerprint))
      return failure();
    step.fingerprint = std::move(*fingerprint);
    if (compile.attention.isAsked())
      step.fingerprint += " with attention " + compile.attention.describe();
    for (ParamOp param : listTrained(module)) {
      int64_t elements = param.getTensorType().getNumElements();
      step.parameters += elements;
      step.trained[param.getSymName().str()] = static_cast<uint64_t>(elements) * sizeof(float);
    }
    step.joined = listJoined(module);
    if (!options.teacher.empty()) {
      FailureOr<std::string> teacher = addTeacher(module, options.teacher, compile.reading);
      if (failed(teacher))
        return failure();
      step.fingerprint += " of teacher " + *teacher;
    }
    return more ? more(module) : success();
  };
  if (failed(hone::compile(compile, context)))
    return failure();
  return step;
}

FailureOr<std::vector<std::string>> pruneModel(const CompileOptions &compile, ModuleOp module,
                                               const std::string &path) {
  CompressionRecorder recorder(/*measures=*/false);
  CompileOptions pruned = compile;
  pruned.outputs.path = path;
  pruned.recorder = &recorder;
  if (failed(rewriteOnnx(pruned, module)) || failed(exportOnnx(module, path, [](int64_t, int64_t, StringRef) {})))
    return failure();
  std::vector<std::string> names;
  for (const WeightRecord &weight : recorder.record.weights)
    if (weight.isChanged())
      names.push_back(weight.name);
  return names;
}

absl::StatusOr<cli::TuningResult> measureTraining(const TrainingStep &step, const TrainingOptions &options,
                                                  const TrainingData &data, int64_t steps) {
  auto ignore = [](const std::string &, std::span<const char>) { return absl::OkStatus(); };
  return cli::runTuning(step.artefact, data.tokens, data.getValid(), options.getTuning(steps), ignore);
}

} // namespace hone
