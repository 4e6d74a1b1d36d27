// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One option, one pass.

#include "Rewrites.h"

#include "hone/Dialect/Hone/HoneTypes.h"
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

/// The N of `intN`.
static int64_t getBits(StringRef type) {
  int64_t bits = 0;
  type.drop_front(3).getAsInteger(10, bits);
  return bits;
}

/// Passes over the codes after those of gptq: the third still takes a hundredth of the error.
static constexpr int64_t kRefinements = 3;

/// The method of a rewrite: the one that is asked for, or the better one that the options have data for.
static std::string getMethod(const CompressionOptions &options, const std::string &asked, StringRef calibrated,
                             StringRef otherwise) {
  return !asked.empty() ? asked : (options.statistics.empty() ? otherwise : calibrated).str();
}

std::optional<double> getShare(StringRef text) {
  double share = 0, scale = text.consume_back("%") ? 100 : 1;
  return text.getAsDouble(share) ? std::nullopt : std::optional(share / scale);
}

static LogicalResult addStructuredPruning(const CompressionOptions &options, OpPassManager &pm, Location loc) {
  std::optional<double> sparsity = getShare(options.pruning.sparsity);
  if (!sparsity)
    return emitError(loc) << "expected --sparsity to be a share of the parameters, such as 25%, but got '"
                          << options.pruning.sparsity << "'";
  if (options.pruning.parts == "layers") {
    if (!options.pruning.method.empty())
      return emitError(loc)
             << "expected no --prune-method with --prune-parts=layers: there is one way to choose layers";
    pm.addPass(createPruneLayers({*sparsity, options.statistics}));
    return success();
  }
  PruneStructuredOptions prune;
  prune.sparsity = *sparsity;
  prune.method = getMethod(options, options.pruning.method, "obs", "magnitude");
  prune.statistics = options.statistics;
  // Heads cost more than channels of as many parameters (docs/compression.md): nobody gets fewer of them unasked.
  StringRef parts = options.pruning.parts.empty() ? "channels" : StringRef(options.pruning.parts);
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

std::optional<compress::NmPattern> getNmPattern(StringRef text) {
  compress::NmPattern pattern;
  auto [kept, width] = text.split(':');
  if (kept.getAsInteger(10, pattern.kept) || width.getAsInteger(10, pattern.width))
    return std::nullopt;
  return pattern;
}

LogicalResult addPruning(const CompressionOptions &options, OpPassManager &pm, Location loc) {
  if (!options.pruning.isAsked())
    return success();
  if (options.pruning.isStructured())
    return addStructuredPruning(options, pm, loc);
  PruneNmOptions prune = options.pruning.nm;
  std::optional<compress::NmPattern> pattern = getNmPattern(options.pruning.pattern);
  if (!pattern)
    return emitError(loc) << "unsupported pattern '" << options.pruning.pattern
                          << "' to prune to; supported: N:M, the N of every M inputs that are kept, such as 2:4, and "
                             "structured";
  prune.n = pattern->kept;
  prune.m = pattern->width;
  prune.method = getMethod(options, options.pruning.method, "sparsegpt", "magnitude");
  prune.statistics = options.statistics;
  pm.addPass(createPruneNm(prune));
  return success();
}

/// Whether the device has kernels of experts that read outliers.
static bool readsExpertOutliers(const CompileOptions &options) { return !options.target.isCuda(); }

/// Lets each weight have a form of its own, under the budget of the options.
static void addChoice(const CompileOptions &options, OpPassManager &pm, bool compensatesErrors) {
  const QuantizationOptions &asked = options.compression.quantization;
  ChooseWidthsOptions choose;
  choose.bitsPerWeight = *asked.targetBits;
  if (asked.group)
    choose.groups = {*asked.group};
  choose.errorCompensation = compensatesErrors;
  choose.expertOutliers = readsExpertOutliers(options);
  choose.statistics = options.compression.statistics;
  pm.addPass(createChooseWidths(choose));
}

/// The bits of integers that come next to a target.
static int64_t getNearestBits(double target) {
  return *llvm::min_element(llvm::reverse(AffineAttr::kWidths), [&](int64_t a, int64_t b) {
    return std::abs(static_cast<double>(a) - target) < std::abs(static_cast<double>(b) - target);
  });
}

/// How outliers are chosen: as is asked for, or as there is data for.
static std::string getOutlierMethod(const CompressionOptions &options, const std::string &otherwise) {
  const QuantizationOptions &asked = options.quantization;
  if (!asked.outlierMethod.empty())
    return asked.outlierMethod;
  if (!asked.pass.sensitivities.empty() || (asked.hasCodebooks() && !options.statistics.empty()))
    return "sensitivity";
  return asked.hasCodebooks() ? "magnitude" : otherwise;
}

/// What the pass gets of the options: with a target every weight that can be stored as integers gets a form of its own, once its channels
/// are scaled.
static QuantizeWeightsOptions getQuantization(const CompileOptions &options) {
  const CompressionOptions &compression = options.compression;
  const QuantizationOptions &asked = compression.quantization;
  QuantizeWeightsOptions quantize = asked.pass;
  quantize.bits = asked.targetBits ? getNearestBits(*asked.targetBits) : getBits(asked.type);
  quantize.outputBits = asked.outputType.empty() ? 0 : getBits(asked.outputType);
  // Eight bits are fine enough for one scale a row; its sums are scaled once.
  quantize.group = asked.group.value_or(quantize.bits == 8 ? 0 : 64);
  quantize.method = getMethod(compression, asked.method, "gptq", "rtn");
  quantize.statistics = compression.statistics;
  quantize.scales = "mse";
  quantize.expertOutliers = readsExpertOutliers(options);
  quantize.outlierMethod = getOutlierMethod(compression, quantize.outlierMethod);
  return quantize;
}

void addChannelScaling(const CompileOptions &options, OpPassManager &pm) {
  if (!options.compression.quantization.isAsked())
    return;
  QuantizeWeightsOptions quantize = getQuantization(options);
  if (quantize.method != "awq" && quantize.method != "gptq")
    return;
  ScaleChannelsOptions scale;
  scale.bits = quantize.bits;
  scale.group = quantize.group;
  scale.statistics = quantize.statistics;
  pm.addPass(createScaleChannels(scale));
}

void addRounding(const CompileOptions &options, OpPassManager &pm) {
  if (!options.compression.quantization.isAsked())
    return;
  QuantizeWeightsOptions quantize = getQuantization(options);
  if (quantize.method == "awq")
    quantize.method = "rtn"; // of the scaled weights
  if (quantize.method == "gptq" || quantize.method == "squeezellm-gptq") {
    quantize.actOrder = quantize.staticGroups = true; // which costs nothing, and mostly gains
    quantize.refinements = kRefinements;
  }
  if (options.compression.quantization.targetBits)
    addChoice(options, pm, /*compensatesErrors=*/quantize.method == "gptq");
  pm.addPass(createQuantizeWeights(quantize));
}

LogicalResult addQuantization(const CompileOptions &options, OpPassManager &pm, Location loc, bool scalesChannels) {
  const QuantizationOptions &asked = options.compression.quantization;
  std::string method = asked.isAsked() ? getQuantization(options).method : "";
  if ((method == "awq" || asked.hasCodebooks()) && !scalesChannels)
    return emitError(loc) << "unsupported method '" << method << "' to quantize nodes of ONNX; supported: gptq, rtn";
  if (scalesChannels)
    addChannelScaling(options, pm);
  addRounding(options, pm);
  return success();
}

/// The type that keys and values are kept in where nobody named one: that of the weights. Who stores weights as integers wants
/// a smaller state as well, and 16 bits of it change less than those integers.
static StringRef getCacheType(const CompileOptions &options) {
  if (!options.state.cache.empty())
    return options.state.cache;
  bool isQuantizing = options.compression.quantization.isAsked();
  return !options.storage.areHalves() && isQuantizing ? StringRef("bf16") : StringRef(options.storage.weights);
}

LogicalResult addRewrites(const CompileOptions &options, OpPassManager &pm, Location loc) {
  if (failed(addPruning(options.compression, pm, loc)) ||
      failed(addQuantization(options, pm, loc, /*scalesChannels=*/true)))
    return failure();
  if (options.storage.areHalves())
    pm.addPass(createConvertWeights({options.storage.weights}));
  StringRef cache = getCacheType(options);
  if (!llvm::is_contained({"", "f32", "model"}, cache))
    pm.addPass(createConvertState({cache.str()}));
  const std::string &passes = options.phases.passes;
  std::string error;
  llvm::raw_string_ostream errors(error);
  if (!passes.empty() && failed(parsePassPipeline(passes, pm, errors)))
    return emitError(loc) << "cannot read the pass pipeline '" << passes << "': " << getReason(error);
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

LogicalResult addStorageRewrites(const CompileOptions &options, OpPassManager &pm, Location loc) {
  FailureOr<SmallVector<int64_t>> rows = getRows(options.storage.uses, loc);
  if (failed(rows))
    return failure();
  SparsifyWeightsOptions sparsify;
  if (!options.storage.force && options.target.isCuda()) {
    sparsify.target = options.target.chip;
    sparsify.rows.assign(rows->begin(), rows->end());
  } else if (!options.storage.force) {
    std::string error;
    FailureOr<CpuTarget> target = CpuTarget::get(options.target.cpu, error);
    if (failed(target))
      return emitError(loc) << error;
    sparsify.target = getKernelIsa(*target).str();
    sparsify.rows.assign(rows->begin(), rows->end());
  }
  pm.addPass(createNarrowScales({/*exact=*/options.target.isCuda()}));
  pm.addPass(createSparsifyWeights(sparsify));
  return success();
}

} // namespace hone
