// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One option, one pass.

#include "Rewrites.h"

#include "hone/Target/CPU.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace hone {

/// What MLIR's parser of pipelines says in the first of its lines, which quote the pipeline.
static StringRef getReason(StringRef errors) {
  StringRef line = errors.split('\n').first;
  return line.contains("error: ") ? line.split("error: ").second : line;
}

/// `intN`, or nothing where N is no number of bits that weights are stored in.
static std::optional<int64_t> getBits(StringRef type) {
  return llvm::StringSwitch<std::optional<int64_t>>(type)
      .Case("int8", 8)
      .Case("int4", 4)
      .Case("int3", 3)
      .Case("int2", 2)
      .Default({});
}

/// The groups that every encoding of --quantize has.
static bool isGroup(int64_t group) { return group == 0 || group == 32 || group == 64 || group == 128; }

/// Passes over the codes after those of gptq: the third still takes a hundredth of the error.
static constexpr int64_t kRefinements = 3;

/// The method of a rewrite: the one that is asked for, or the better one that the options have data for.
static std::string getMethod(const CompileOptions &options, const std::string &asked, StringRef calibrated,
                             StringRef otherwise) {
  return !asked.empty() ? asked : (options.calibration.empty() ? otherwise : calibrated).str();
}

/// `25%` or `0.25` as 0.25; nothing for what is no number.
static std::optional<double> getShare(StringRef text) {
  double share = 0, scale = text.consume_back("%") ? 100 : 1;
  return text.getAsDouble(share) ? std::nullopt : std::optional(share / scale);
}

static LogicalResult addStructuredPruning(const CompileOptions &options, OpPassManager &pm, Location loc) {
  std::optional<double> sparsity = getShare(options.sparsity);
  if (!sparsity)
    return emitError(loc) << "expected --sparsity to be a share of the parameters, such as 25%, but got '"
                          << options.sparsity << "'";
  if (options.pruneParts == "layers") {
    if (!options.pruneMethod.empty())
      return emitError(loc)
             << "expected no --prune-method with --prune-parts=layers: there is one way to choose layers";
    pm.addPass(createPruneLayers({*sparsity, options.calibration}));
    return success();
  }
  PruneStructuredOptions prune;
  prune.sparsity = *sparsity;
  prune.method = getMethod(options, options.pruneMethod, "obs", "magnitude");
  prune.statistics = options.calibration;
  // Heads cost more than channels of as many parameters (docs/compression.md): nobody gets fewer of them unasked.
  StringRef parts = options.pruneParts.empty() ? "channels" : StringRef(options.pruneParts);
  SmallVector<StringRef> words;
  parts.split(words, ',');
  prune.channels = llvm::is_contained(words, "channels");
  prune.heads = llvm::is_contained(words, "heads");
  if (static_cast<size_t>(prune.channels) + static_cast<size_t>(prune.heads) != words.size())
    return emitError(loc) << "unsupported parts '" << parts
                          << "' to remove; supported: channels, heads, and channels,heads; or layers";
  pm.addPass(createPruneStructured(prune));
  return success();
}

static LogicalResult addPruning(const CompileOptions &options, OpPassManager &pm, Location loc) {
  if (options.prune == "structured")
    return addStructuredPruning(options, pm, loc);
  PruneNmOptions prune;
  auto [kept, width] = StringRef(options.prune).split(':');
  if (kept.getAsInteger(10, prune.n) || width.getAsInteger(10, prune.m))
    return emitError(loc) << "unsupported pattern '" << options.prune
                          << "' to prune to; supported: N:M, the N of every M inputs that are kept, such as 2:4, and "
                             "structured";
  prune.method = getMethod(options, options.pruneMethod, "sparsegpt", "magnitude");
  prune.statistics = options.calibration;
  prune.outputs = options.pruneOutputs;
  pm.addPass(createPruneNm(prune));
  return success();
}

/// Whether the target has kernels of experts that read outliers.
static bool readsExpertOutliers(const CompileOptions &options) { return options.target != "cuda"; }

/// Lets each weight have a form of its own, under the budget of the options.
static void addChoice(const CompileOptions &options, OpPassManager &pm, bool compensatesErrors) {
  ChooseWidthsOptions choose;
  choose.bitsPerWeight = *options.targetBits;
  if (options.group)
    choose.groups = {*options.group};
  choose.errorCompensation = compensatesErrors;
  choose.expertOutliers = readsExpertOutliers(options);
  choose.statistics = options.calibration;
  pm.addPass(createChooseWidths(choose));
}

/// The bits of integers that come next to a target.
static int64_t getNearestBits(double target) { return target < 2.5 ? 2 : target < 3.5 ? 3 : target < 6 ? 4 : 8; }

static LogicalResult addQuantization(const CompileOptions &options, OpPassManager &pm, Location loc,
                                     bool scalesChannels) {
  // With a target every weight that can be stored as integers gets a form of its own, once its channels are scaled.
  std::optional<int64_t> bits = options.targetBits ? getNearestBits(*options.targetBits) : getBits(options.quantize);
  if (!bits)
    return emitError(loc) << "unsupported type '" << options.quantize
                          << "' to quantize to; supported: int8, int4, int3, int2";
  // Eight bits are fine enough for one scale a row; its sums are scaled once.
  int64_t group = options.group.value_or(*bits == 8 ? 0 : 64);
  if (!isGroup(group))
    return emitError(loc) << "unsupported group " << group << "; supported: 0, 32, 64, 128";
  std::optional<int64_t> outputBits = options.quantizeOutputs.empty() ? 0 : getBits(options.quantizeOutputs);
  if (!outputBits)
    return emitError(loc) << "unsupported type '" << options.quantizeOutputs
                          << "' to quantize outputs to; supported: int8, int4, int3, int2";
  QuantizeWeightsOptions quantize;
  quantize.bits = *bits;
  quantize.outputBits = *outputBits;
  quantize.group = group;
  quantize.method = getMethod(options, options.quantizeMethod, "gptq", "rtn");
  quantize.statistics = options.calibration;
  quantize.scales = "mse";
  bool hasCodebooks = StringRef(quantize.method).starts_with("squeezellm");
  if ((quantize.method == "awq" || hasCodebooks) && !scalesChannels)
    return emitError(loc) << "unsupported method '" << quantize.method
                          << "' to quantize nodes of ONNX; supported: gptq, rtn";
  if (hasCodebooks && (options.targetBits || options.group))
    return emitError(loc) << "expected no " << (options.group ? "--group" : "--target-bits-per-weight")
                          << " with --quantize-method=" << quantize.method << ": it has codebooks of whole rows";
  if (scalesChannels && (quantize.method == "awq" || quantize.method == "gptq")) {
    ScaleChannelsOptions scale;
    scale.bits = quantize.bits;
    scale.group = quantize.group;
    scale.statistics = options.calibration;
    pm.addPass(createScaleChannels(scale));
  }
  if (quantize.method == "awq")
    quantize.method = "rtn"; // of the scaled weights
  if (quantize.method == "gptq" || quantize.method == "squeezellm-gptq") {
    quantize.actOrder = quantize.staticGroups = true; // which costs nothing, and mostly gains
    quantize.refinements = kRefinements;
  }
  if (options.targetBits)
    addChoice(options, pm, /*compensatesErrors=*/quantize.method == "gptq");
  quantize.outliers = options.outliers;
  quantize.expertOutliers = readsExpertOutliers(options);
  quantize.sensitivities = options.sensitivities;
  if (!options.outlierMethod.empty())
    quantize.outlierMethod = options.outlierMethod;
  else if (!options.sensitivities.empty() || (hasCodebooks && !options.calibration.empty()))
    quantize.outlierMethod = "sensitivity";
  else if (hasCodebooks)
    quantize.outlierMethod = "magnitude";
  pm.addPass(createQuantizeWeights(quantize));
  return success();
}

static bool isQuantizing(const CompileOptions &options) {
  return !options.quantize.empty() || options.targetBits.has_value();
}

/// The type that keys and values are kept in where nobody named one: that of the weights. Who stores weights as integers wants
/// a smaller state as well, and 16 bits of it change less than those integers.
static StringRef getCacheType(const CompileOptions &options) {
  if (!options.cache.empty())
    return options.cache;
  bool areHalves = !options.weights.empty() && options.weights != "f32";
  return !areHalves && isQuantizing(options) ? StringRef("bf16") : StringRef(options.weights);
}

/// Options that do nothing without another one.
static LogicalResult checkDependents(const CompileOptions &options, Location loc) {
  if (!options.pruneMethod.empty() && options.prune.empty())
    return emitError(loc) << "expected --prune with --prune-method";
  if (options.pruneOutputs && (options.prune.empty() || options.prune == "structured"))
    return emitError(loc) << "expected --prune=N:M with --prune-outputs";
  for (auto [value, name] : {std::pair(&options.sparsity, "--sparsity"), {&options.pruneParts, "--prune-parts"}})
    if (!value->empty() && options.prune != "structured")
      return emitError(loc) << "expected --prune=structured with " << name;
  if (!options.quantize.empty() && options.targetBits)
    return emitError(loc) << "expected --quantize or --target-bits-per-weight, but got both";
  if (!options.quantizeMethod.empty() && !isQuantizing(options))
    return emitError(loc) << "expected --quantize with --quantize-method";
  if (!options.quantizeOutputs.empty() && options.quantize.empty())
    return emitError(loc) << "expected --quantize with --quantize-outputs";
  if (!options.outliers.empty() && options.quantize.empty())
    return emitError(loc) << "expected --quantize with --outliers";
  bool readsSensitivities = options.quantizeMethod == "squeezellm"; // for codebooks
  if (options.outliers.empty() &&
      !(options.outlierMethod.empty() && (options.sensitivities.empty() || readsSensitivities)))
    return emitError(loc) << "expected --outliers with --outlier-method and --sensitivities";
  if (!options.calibration.empty() && options.prune.empty() && !isQuantizing(options))
    return emitError(loc) << "expected --prune or --quantize with --calibration";
  return success();
}

LogicalResult addCompression(const CompileOptions &options, OpPassManager &pm, Location loc, bool scalesChannels) {
  if (failed(checkDependents(options, loc)) || (!options.prune.empty() && failed(addPruning(options, pm, loc))))
    return failure();
  return success(!isQuantizing(options) || succeeded(addQuantization(options, pm, loc, scalesChannels)));
}

LogicalResult addRewrites(const CompileOptions &options, OpPassManager &pm, Location loc) {
  if (failed(addCompression(options, pm, loc, /*scalesChannels=*/true)))
    return failure();
  if (options.weights == "f16" || options.weights == "bf16")
    pm.addPass(createConvertWeights({options.weights}));
  else if (!options.weights.empty() && options.weights != "f32")
    return emitError(loc) << "unsupported type '" << options.weights << "' of weights; supported: bf16, f16, f32";
  StringRef cache = getCacheType(options);
  if (llvm::is_contained({"f16", "bf16", "int8", "int4"}, cache))
    pm.addPass(createConvertState({cache.str()}));
  else if (!llvm::is_contained({"", "f32", "model"}, cache))
    return emitError(loc) << "unsupported type '" << cache
                          << "' of keys and values; supported: bf16, f16, f32, int8, int4, model";
  std::string error;
  llvm::raw_string_ostream errors(error);
  if (!options.passPipeline.empty() && failed(parsePassPipeline(options.passPipeline, pm, errors)))
    return emitError(loc) << "cannot read the pass pipeline '" << options.passPipeline << "': " << getReason(error);
  return success();
}

/// The numbers of rows that a list of words stands for: a token, a few of speculation, a prompt.
static FailureOr<SmallVector<int64_t>> getRows(StringRef list, Location loc) {
  SmallVector<StringRef> words;
  list.split(words, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/!list.empty());
  SmallVector<int64_t> rows;
  for (StringRef word : words) {
    int64_t count =
        llvm::StringSwitch<int64_t>(word).Case("decode", 1).Case("verify", 8).Case("prefill", 512).Default(0);
    if (count == 0 && (word.getAsInteger(10, count) || count < 1))
      return emitError(loc) << "unsupported use '" << word
                            << "' to tune for; supported: decode, verify, prefill, and numbers of tokens from 1 on";
    rows.push_back(count);
  }
  return rows;
}

LogicalResult addSparsification(const CompileOptions &options, OpPassManager &pm, Location loc) {
  FailureOr<SmallVector<int64_t>> rows = getRows(options.tuneFor, loc);
  if (failed(rows))
    return failure();
  SparsifyWeightsOptions sparsify;
  if (!options.force && options.target == "cuda") {
    sparsify.target = options.chip;
    sparsify.rows.assign(rows->begin(), rows->end());
  } else if (!options.force) {
    std::string error;
    FailureOr<CpuTarget> target = CpuTarget::get(options.cpu, error);
    if (failed(target))
      return emitError(loc) << error;
    sparsify.target = getKernelIsa(*target).str();
    sparsify.rows.assign(rows->begin(), rows->end());
  }
  pm.addPass(createSparsifyWeights(sparsify));
  return success();
}

} // namespace hone
