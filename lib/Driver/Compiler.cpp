// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the phases of a compilation and writes what each leaves.

#include "Compiler.h"

#include "CompressionRecord.h"
#include "DraftModel.h"
#include "ExternalFiles.h"
#include "Models.h"
#include "Outputs.h"
#include "RemarksFile.h"
#include "Rewrites.h"
#include "hone/Artefact/Artefact.h"
#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Dialect/Hone/ScratchBytes.h"
#include "hone/Dialect/Hone/Shards.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Target/CPU.h"
#include "hone/Target/CUDA.h"
#include "hone/Transforms/Passes.h"
#include "hone/cli/progress.h"
#include "hone/cpu/cpu_features.h"
#include "hone/io/sentence_encoder.h"
#include "hone/runtime/device.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <chrono>

using namespace mlir;

namespace hone {

/// What the artefact's manifest says; filled on the way, since later phases forget what earlier ones know.
static LogicalResult describe(ModuleOp module, io::Manifest &manifest) {
  if (failed(describeEntries(module, manifest)))
    return failure();
  FailureOr<int64_t> ranks = countRanks(module);
  if (failed(ranks))
    return failure();
  manifest.ranks = *ranks;
  manifest.gatheredWeights = listGatheredWeights(module);
  return success();
}

/// Logits that a loss holds at once, 96 MiB of f32: each chunk reads the last layer's weight and the sum of its gradient.
static constexpr int64_t kMostLogits = int64_t{3} << 23;

/// Of the model as it is rewritten and lowered: transformer parts in hone, everything else in linalg.
static void addGradients(const GradientOptions &options, const TargetOptions &target, OpPassManager &pm) {
  DifferentiateOptions differentiate;
  differentiate.loss = options.loss;
  if (!target.isCuda()) // there a loop's products would not add in place
    differentiate.mostLogits = kMostLogits;
  if (options.distillation) {
    differentiate.teacher = options.distillation->teacher;
    differentiate.distillWeight = options.distillation->weight;
    differentiate.temperature = options.distillation->temperature;
    differentiate.featureWeight = options.distillation->featureWeight;
  }
  if (options.of != "parameters")
    for (StringRef name : llvm::split(options.of, ','))
      differentiate.of.push_back(name.str());
  pm.addPass(createDifferentiate(differentiate));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (!options.keepsParameters())
    return;
  if (options.integrates)
    pm.addPass(createIntegrateGradients());
  else
    pm.addPass(createAddOptimizer(*options.optimizer));
  pm.addPass(createSymbolDCEPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (options.roundsProducts)
    pm.addPass(createRoundProducts());
}

FailureOr<std::string> keepDifferentiated(ModuleOp module) {
  FailureOr<std::string> fingerprint = getFingerprint(module);
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (module.lookupSymbol("forward") && main && SymbolTable::symbolKnownUseEmpty(main, module))
    main.erase();
  return fingerprint;
}

LogicalResult buildPhase(const Phase &phase, const CompileOptions &options, OpPassManager &pm, Location loc) {
  if (phase.name == "import" && options.gradients.isAsked() && !options.gradients.integrates)
    pm.addPass(createNameConstants());
  if (phase.name == "lower" && !options.gradients.keepsParameters())
    pm.addPass(createSplitGateUp());
  if (phase.build)
    phase.build(pm, {options.target.getSanitizer(), options.raising.passes, options.sizes});
  if (phase.name == "lower" && options.gradients.isAsked())
    addGradients(options.gradients, options.target, pm);
  if (phase.name == "tensor" && options.gradients.isAsked())
    pm.addNestedPass<func::FuncOp>(createRematerialize());
  if (phase.name != "rewrite")
    return success();
  // Parameters that are measured or trained are those of the file.
  if (!options.gradients.isAsked() && !options.rewrite && options.target.ranks == 1)
    pm.addPass(createAbsorbLatents());
  if (failed(addRewrites(options, pm, loc)))
    return failure();
  if (!options.gradients.keepsParameters() && failed(addStorageRewrites(options, pm, loc)))
    return failure();
  // Of the model as it is rewritten:
  if (options.attention.isListed())
    pm.addPass(createSparsifyAttention(options.attention.getPassOptions()));
  if (options.attention.skips())
    pm.addPass(createSkipSoftmax(options.attention.getFilterOptions()));
  if (options.retention.isAsked())
    pm.addPass(createRetainKeys(options.retention.getPassOptions()));
  if (options.attention.isMeasured)
    pm.addPass(createMeasureSelection(options.attention.getMeasureOptions()));
  if (options.speculation.takesBatches())
    pm.addPass(createSeparateSequences());
  if (options.speculation.takesTrees())
    pm.addPass(createSpeculate()); // of what is separated
  if (options.target.ranks != 1)
    pm.addPass(createShardLayers({options.target.ranks})); // parts of weights as they are stored
  return success();
}

/// Whether a product with a parameter of the module may round what it multiplies it with.
static bool mayRoundActivations(ModuleOp module) {
  return llvm::any_of(module.getOps<ParamOp>(), [](ParamOp param) {
    auto encoding = dyn_cast_or_null<EncodingInterface>(param.getTensorType().getEncoding());
    return encoding && encoding.getActivationRounding().bits != 0;
  });
}

/// The options of a model that came quantized: where nobody named a type of keys and values, those of bf16, which change less than
/// activations do that are rounded to 8 bits.
static CompileOptions withCacheOf(ModuleOp module, CompileOptions options) {
  if (options.state.cache.empty() && !options.storage.areHalves() && mayRoundActivations(module))
    options.state.cache = "bf16";
  return options;
}

static LogicalResult runPhase(const Phase &phase, const CompileOptions &options, ModuleOp module) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName(), PassManager::Nesting::Implicit);
  if (failed(buildPhase(phase, withCacheOf(module, options), pm, module.getLoc())))
    return failure();
  if (phase.name != "rewrite")
    return pm.run(module);
  // Who looks at the model after its rewrites, or at what was measured of it, asks which model it was.
  if ((options.rewrite || options.retention.needsImportance()) && failed(keepFingerprint(module)))
    return failure();
  auto rewrite = [&] { return pm.run(module); };
  if (failed(options.recorder ? options.recorder->watch(module, rewrite) : rewrite()))
    return failure();
  return options.rewrite ? options.rewrite(module) : success();
}

static LogicalResult saveIr(const CompileOptions &options, const Phase &phase, size_t number,
                            const io::InputFiles &inputs, ModuleOp module) {
  if (options.outputs.saveIr.empty())
    return success();
  if (std::error_code error =
          llvm::sys::fs::create_directories(options.outputs.saveIr, /*IgnoreExisting=*/true, llvm::sys::fs::all_all))
    return emitError(module.getLoc()) << "cannot make folder '" << options.outputs.saveIr << "': " << error.message();
  std::string name = options.outputs.saveIr + "/" + std::to_string(number) + "-" + phase.name.str() + ".mlir";
  return failed(report(module.getLoc(), inputs.checkOutput(name))) ? failure() : writeModule(module, name);
}

/// How texts begin and end, and which token features take the place of, as generation_config.json says, and where it does not, config.json.
static LogicalResult describeTexts(const OutputOptions &options, Location loc, io::Manifest &manifest) {
  io::GenerationInfo &info = manifest.generation;
  for (const std::string &file : {options.generationConfig, options.modelConfig}) {
    if (file.empty())
      continue;
    auto config = io::readGenerationConfig(file);
    if (!config.ok())
      return report(loc, config.status());
    if (manifest.features && manifest.features->token < 0)
      manifest.features->token = config->featureToken.value_or(-1);
    bool isFirst = info.isEmpty();
    if (isFirst)
      info.rules = config->info.rules;
    if (info.endTokens.empty())
      info.endTokens = config->info.endTokens;
    if (info.startTokens.empty())
      info.startTokens = config->info.startTokens;
    if (!info.beginToken)
      info.beginToken = config->info.beginToken;
    if (isFirst && !config->ignored.empty())
      emitWarning(loc) << file << " asks for " << llvm::join(config->ignored, ", ")
                       << ", which 'hone run' does not follow";
  }
  if (manifest.features && manifest.features->token < 0)
    return emitError(loc)
           << "expected --feature-token, the token of prompts that features take the place of, or a configuration with "
              "'image_token_id' or 'audio_token_id'";
  return success();
}

/// Adds the entry for embeddings of texts, as the options or else the model's folder say.
static LogicalResult addPooling(PoolingOptions options, Location loc, ModuleOp module, io::Manifest &manifest) {
  if (options.pooling.empty() && !options.folder.empty()) {
    auto encoder = io::readSentenceEncoder(options.folder);
    if (!encoder.ok())
      emitWarning(loc) << std::string(encoder.status().message()) << "; the artefact gets no entry '" << kEmbed << "'";
    else if (*encoder)
      options = {(*encoder)->pooling, (*encoder)->normalizes, (*encoder)->mostTokens, options.folder};
  }
  if (options.pooling.empty())
    return success();
  if (!llvm::is_contained(listPoolings(), options.pooling)) {
    emitWarning(loc) << "unsupported pooling '" << options.pooling << "'; the artefact gets no entry '" << kEmbed
                     << "'";
    return success();
  }
  manifest.mostEmbeddedTokens = options.mostTokens;
  return hone::addPooling(module, options.pooling, options.normalizes);
}

static void fillManifest(const CompileOptions &options, const CpuTarget &target, io::Manifest &manifest) {
  manifest.honeVersion = HONE_VERSION;
  manifest.target = options.target.device;
  manifest.cpuName = target.name;
  manifest.sanitizer = options.target.sanitize;
  for (const std::string &feature : target.features)
    if (cpu::cpuHasFeature(feature)) // one that the loader knows how to look for
      manifest.cpuFeatures.push_back(feature);
  manifest.sourceName = llvm::sys::path::filename(options.input).str();
  if (!options.outputs.tokenizer.empty())
    manifest.tokenizer = "tokenizer.json";
}

/// Loads the dialects that phases after phase `number` use. Passes would do it, but not beside the thread that writes weights: MLIR's
/// tables of types change when a dialect is loaded, and have no lock.
static LogicalResult loadDialectsAfter(size_t number, const CompileOptions &options, ModuleOp module) {
  MLIRContext *context = module.getContext();
  for (const Phase &phase : getPhases(options.target.device).drop_front(number + 1)) {
    PassManager pm(context, ModuleOp::getOperationName(), PassManager::Nesting::Implicit);
    if (failed(buildPhase(phase, options, pm, module.getLoc())))
      return failure();
    DialectRegistry dialects;
    pm.getDependentDialects(dialects);
    context->appendDialectRegistry(dialects);
    for (StringRef name : dialects.getDialectNames())
      context->getOrLoadDialect(name);
  }
  return success();
}

/// Starts to write the weights as soon as their places are known: that takes as long as what is left to compile.
static LogicalResult beginArtefact(const CompileOptions &options, ModuleOp module, io::Manifest &manifest,
                                   ArtefactWriter &artefact) {
  manifest.kernels = listKernels(module);
  if (!options.outputs.tokenizer.empty() && failed(artefact.addTokenizer(options.outputs.tokenizer)))
    return failure();
  return artefact.startWeights(module, manifest.ranks);
}

LogicalResult runPhases(ModuleOp module, StringRef last) {
  for (const Phase &phase : getPhases()) {
    if (failed(runPhase(phase, CompileOptions(), module)))
      return failure();
    if (phase.name == last)
      break;
  }
  return success();
}

namespace {

/// Says on standard error which step is under way, and afterwards of those that took a second or more how long.
class Steps {
public:
  explicit Steps(size_t count) : style(cli::getProgressStyle()), count(count) {}

  LogicalResult step(StringRef what, llvm::function_ref<LogicalResult()> action) {
    std::string name = llvm::formatv("[{0}/{1}] {2}", ++number, count, what);
    auto begin = std::chrono::steady_clock::now();
    say(style == cli::ProgressStyle::Plain ? name + "\n" : name);
    LogicalResult result = action();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    say(seconds >= 1.0 ? llvm::formatv("{0} ({1:F1} s)\n", name, seconds).str() : "");
    return result;
  }

private:
  void say(const std::string &text) const {
    if (style == cli::ProgressStyle::Terminal)
      llvm::errs() << cli::kClearLine;
    if (style != cli::ProgressStyle::None)
      llvm::errs() << text;
  }

  cli::ProgressStyle style;
  size_t count, number = 0;
};

} // namespace

/// Whether `module` can be what the phases before --start-from leave, and the rest make what is asked for.
static LogicalResult checkStart(const CompileOptions &options, ModuleOp module) {
  size_t start = options.phases.startFrom.empty() ? 0 : getPhaseNumber(options.phases.startFrom),
         lower = getPhaseNumber("lower");
  if (start > getPhaseNumber("tensor") && options.phases.stopAfter.empty())
    return emitError(module.getLoc()) << "cannot make an artefact from phase '" << options.phases.startFrom
                                      << "': parameters and signature are known up to phase 'tensor'";
  if (!options.phases.stopAfter.empty() && getPhaseNumber(options.phases.stopAfter) < start)
    return emitError(module.getLoc()) << "cannot start from phase '" << options.phases.startFrom << "' and stop after '"
                                      << options.phases.stopAfter << "', which is before it";
  if (start <= lower)
    return success();
  WalkResult result = module.walk([&](Operation *op) {
    if (!onnxir::isOnnxOp(op))
      return WalkResult::advance();
    op->emitError() << "expected IR from the phase before '" << options.phases.startFrom << "', but got "
                    << op->getName() << ", which phase 'lower' replaces";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// The device's kernels, made before the host's program, which is what is left.
static LogicalResult emitKernels(const CompileOptions &options, const CudaChip &chip, ModuleOp module,
                                 const io::InputFiles &inputs, const ArtefactWriter &artefact, io::Manifest &manifest) {
  constexpr llvm::StringLiteral file = "device.fatbin";
  manifest.device =
      io::DeviceInfo{chip.name.str(), file.str(), hrt::listGeneratedKernels(module), HONE_DEVICE_SERVICES_VERSION};
  CudaOptions cuda{chip, options.target.ptxas,
                   options.outputs.saveIr.empty() ? "" : options.outputs.saveIr + "/device.ptx"};
  if (failed(report(module.getLoc(), inputs.checkOutput(cuda.savePtx))))
    return failure();
  return emitDevice(module, cuda, artefact.getFile(file));
}

/// The chip that is asked for, or nothing for the CPU; fails after an error.
static FailureOr<std::optional<CudaChip>> getChip(const CompileOptions &options, Location loc) {
  if (!options.target.isCuda())
    return std::optional<CudaChip>();
  std::string error;
  FailureOr<CudaChip> chip = CudaChip::get(options.target.chip, error);
  if (failed(chip))
    return emitError(loc) << error;
  return std::optional<CudaChip>(*chip);
}

namespace {

/// One compilation, after its options were checked and its model was read.
struct Compilation {
  const CompileOptions &options;
  const CpuTarget &target;
  const std::optional<CudaChip> &chip;
  const io::InputFiles &inputs;
  Steps &steps;
  ModuleOp module;
  OwningOpRef<ModuleOp> draft; // as it was read, and from lowerDraft() on as `module` takes it in; or null
  io::Manifest manifest;
  std::optional<ArtefactWriter> artefact; // where no phase is the last one

  /// Runs the phases; the last one that is asked for writes its IR.
  LogicalResult runPhases();
  LogicalResult runPhase(const Phase &phase, size_t number);
  LogicalResult lowerDraft();
  LogicalResult finish();
};

} // namespace

/// Takes the draft model through the phases between a file and entry points. The model itself is not rewritten yet.
LogicalResult Compilation::lowerDraft() {
  CompileOptions own = getDraftOptions(options);
  auto run = [&](StringRef name) {
    const Phase &phase = getPhases(options.target.device)[getPhaseNumber(name)];
    return hone::runPhase(phase, own, *draft);
  };
  if (options.draft.isSelf())
    draft = module.clone();
  else if (failed(run("raise")))
    return failure();
  onnxir::dropDescriptions(*draft);
  if (failed(checkDraft(options, module, *draft)))
    return failure();
  keepForward(*draft);
  return failure(failed(run("rewrite")) || failed(run("lower")));
}

LogicalResult Compilation::runPhase(const Phase &phase, size_t number) {
  bool entries = phase.name == "tensor"; // where functions become entry points, and parameters get their places
  if (phase.name == "rewrite" && options.draft.isAsked() &&
      failed(steps.step("the draft model, until its entry point", [&] { return lowerDraft(); })))
    return failure();
  if (entries && draft && failed(addDraft(module, *draft)))
    return failure();
  if (entries && artefact && failed(describe(module, manifest)))
    return failure();
  if (failed(steps.step(phase.summary, [&] { return hone::runPhase(phase, options, module); })) ||
      failed(saveIr(options, phase, number, inputs, module)))
    return failure();
  if (phase.name == options.phases.stopAfter) {
    StringRef path = options.outputs.path.empty() ? "-" : StringRef(options.outputs.path);
    warnAboutNames(module, path);
    return writeModule(module, path);
  }
  onnxir::dropDescriptions(module);
  if (entries)
    describeLayouts(module, manifest);
  if (!entries || !artefact)
    return success();
  return failure(failed(loadDialectsAfter(number, options, module)) ||
                 failed(beginArtefact(options, module, manifest, *artefact)));
}

LogicalResult Compilation::runPhases() {
  bool started = options.phases.startFrom.empty();
  for (auto [number, phase] : llvm::enumerate(getPhases(options.target.device))) {
    started |= phase.name == options.phases.startFrom;
    if (started && failed(runPhase(phase, number)))
      return failure();
    if (phase.name == options.phases.stopAfter)
      return success();
  }
  return finish();
}

LogicalResult Compilation::finish() {
  auto emitDevice = [&] { return emitKernels(options, *chip, module, inputs, *artefact, manifest); };
  if (chip && failed(steps.step("machine code of the device", emitDevice)))
    return failure();
  auto emit = [&] {
    return failure(failed(artefact->signProgram(module, manifest)) ||
                   failed(emitProgram(module, target, options.target.getSanitizer(), artefact->getFile("program.so"))));
  };
  if (failed(steps.step("machine code", emit)) ||
      failed(steps.step("weights written", [&] { return artefact->finishWeights(); })))
    return failure();
  return artefact->commit(std::move(manifest));
}

/// Begins the artefact of a compilation for `chip`, or for the CPU.
static FailureOr<ArtefactWriter> createArtefact(const CompileOptions &options, const std::optional<CudaChip> &chip,
                                                const io::InputFiles &inputs, Location loc) {
  FailureOr<ArtefactWriter> artefact = ArtefactWriter::create(options.outputs.path, inputs, loc);
  if (succeeded(artefact) && chip && StringRef(artefact->getFile("")).contains(','))
    return emitError(loc) << "unsupported output '" << options.outputs.path
                          << "' for the target cuda; supported: names without a comma, where fatbinary splits options";
  return artefact;
}

LogicalResult compile(const CompileOptions &options, MLIRContext *context) {
  auto loc = FileLineColLoc::get(context, llvm::sys::path::filename(options.input), 0, 0);
  std::string error;
  FailureOr<CpuTarget> target = CpuTarget::get(options.target.cpu, error);
  if (failed(target))
    return emitError(loc) << error;
  FailureOr<std::optional<CudaChip>> chip = getChip(options, loc);
  if (failed(chip))
    return failure();
  context->loadDialect<HoneDialect>();
  ScratchBytes::get(context).spillBeside(options.outputs.path);
  Steps steps(getPhases(options.target.device).size() + 3 + chip->has_value() + options.draft.isAsked());
  Models models;
  if (failed(steps.step("model read", [&] { return readModels(options, context, models); })))
    return failure();
  io::InputFiles inputs = listInputs(options, models.list());
  ModuleOp module = *models.model;
  if (failed(checkStart(options, module)) || failed(checkOutputs(options, inputs, loc)))
    return failure();
  FailureOr<std::unique_ptr<RemarksFile>> remarks = RemarksFile::open(options.outputs.remarks, *context, loc);
  if (failed(remarks))
    return failure();
  FailureOr<std::optional<io::FeatureInfo>> features = joinModels(options.encoder, models);
  if (failed(features))
    return failure();
  Compilation compilation{options, *target, *chip, inputs, steps, module, std::move(models.draft), {}, {}};
  compilation.manifest.features = *features;
  fillManifest(options, *target, compilation.manifest);
  if (failed(describeTexts(options.outputs, loc, compilation.manifest)) ||
      failed(addPooling(options.pooling, loc, module, compilation.manifest)))
    return failure();
  if (options.phases.stopAfter.empty()) {
    FailureOr<ArtefactWriter> artefact = createArtefact(options, *chip, inputs, loc);
    if (failed(artefact))
      return failure();
    compilation.artefact.emplace(std::move(*artefact));
  }
  LogicalResult result = compilation.runPhases();
  // What was decided until an error is worth reading, too.
  return succeeded((*remarks)->commit(loc)) ? result : failure();
}

} // namespace hone
