// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One option, one pass.

#include "Rewrites.h"

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

/// Passes over the levels behind those of gptq: the third still takes a hundredth of the error.
static constexpr int64_t kRefinements = 3;

/// The method of a rewrite: the one that is asked for, or the better one that the options have data for.
static std::string getMethod(const CompileOptions &options, const std::string &asked, StringRef calibrated,
                             StringRef otherwise) {
  return !asked.empty() ? asked : (options.calibration.empty() ? otherwise : calibrated).str();
}

static LogicalResult addPruning(const CompileOptions &options, OpPassManager &pm, Location loc) {
  PruneNmOptions prune;
  auto [kept, width] = StringRef(options.prune).split(':');
  if (kept.getAsInteger(10, prune.n) || width.getAsInteger(10, prune.m))
    return emitError(loc) << "unsupported pattern '" << options.prune
                          << "' to prune to; supported: N:M, the N of every M inputs that are kept, such as 2:4";
  prune.method = getMethod(options, options.pruneMethod, "sparsegpt", "magnitude");
  prune.statistics = options.calibration;
  pm.addPass(createPruneNm(prune));
  return success();
}

static LogicalResult addQuantization(const CompileOptions &options, OpPassManager &pm, Location loc,
                                     bool scalesChannels) {
  std::optional<int64_t> bits = getBits(options.quantize);
  if (!bits)
    return emitError(loc) << "unsupported type '" << options.quantize
                          << "' to quantize to; supported: int8, int4, int3, int2";
  // Eight bits are fine enough for one scale a row; its sums are scaled once.
  int64_t group = options.group.value_or(*bits == 8 ? 0 : 64);
  if (!isGroup(group))
    return emitError(loc) << "unsupported group " << group << "; supported: 0, 32, 64, 128";
  QuantizeWeightsOptions quantize;
  quantize.bits = *bits;
  quantize.group = group;
  quantize.method = getMethod(options, options.quantizeMethod, "gptq", "rtn");
  quantize.statistics = options.calibration;
  quantize.scales = "mse";
  if (quantize.method == "awq" && !scalesChannels)
    return emitError(loc) << "unsupported method 'awq' to quantize nodes of ONNX; supported: gptq, rtn";
  if (scalesChannels && (quantize.method == "awq" || quantize.method == "gptq")) {
    ScaleChannelsOptions scale;
    scale.bits = quantize.bits;
    scale.group = quantize.group;
    scale.statistics = options.calibration;
    pm.addPass(createScaleChannels(scale));
  }
  if (quantize.method == "awq")
    quantize.method = "rtn"; // of the scaled weights
  if (quantize.method == "gptq") {
    quantize.actOrder = quantize.staticGroups = true; // which costs nothing, and mostly gains
    quantize.refinements = kRefinements;
  }
  quantize.outliers = options.outliers;
  quantize.sensitivities = options.sensitivities;
  if (!options.outlierMethod.empty())
    quantize.outlierMethod = options.outlierMethod;
  else if (!options.sensitivities.empty())
    quantize.outlierMethod = "sensitivity";
  pm.addPass(createQuantizeWeights(quantize));
  return success();
}

/// The type that keys and values are kept in where nobody named one: that of the weights. Who stores weights as integers wants
/// a smaller state as well, and 16 bits of it change less than those integers.
static StringRef getCacheType(const CompileOptions &options) {
  if (!options.cache.empty())
    return options.cache;
  return options.weights.empty() && !options.quantize.empty() ? StringRef("bf16") : StringRef(options.weights);
}

/// Options that do nothing without another one.
static LogicalResult checkDependents(const CompileOptions &options, Location loc) {
  if (!options.pruneMethod.empty() && options.prune.empty())
    return emitError(loc) << "expected --prune with --prune-method";
  if (!options.quantizeMethod.empty() && options.quantize.empty())
    return emitError(loc) << "expected --quantize with --quantize-method";
  if (!options.outliers.empty() && options.quantize.empty())
    return emitError(loc) << "expected --quantize with --outliers";
  if (options.outliers.empty() && !(options.outlierMethod.empty() && options.sensitivities.empty()))
    return emitError(loc) << "expected --outliers with --outlier-method and --sensitivities";
  if (!options.calibration.empty() && options.prune.empty() && options.quantize.empty())
    return emitError(loc) << "expected --prune or --quantize with --calibration";
  return success();
}

LogicalResult addCompression(const CompileOptions &options, OpPassManager &pm, Location loc, bool scalesChannels) {
  if (failed(checkDependents(options, loc)) || (!options.prune.empty() && failed(addPruning(options, pm, loc))))
    return failure();
  return success(options.quantize.empty() || succeeded(addQuantization(options, pm, loc, scalesChannels)));
}

LogicalResult addRewrites(const CompileOptions &options, OpPassManager &pm, Location loc) {
  if (failed(addCompression(options, pm, loc, /*scalesChannels=*/true)))
    return failure();
  if (options.weights == "f16" || options.weights == "bf16")
    pm.addPass(createConvertWeights({options.weights}));
  else if (!options.weights.empty())
    return emitError(loc) << "unsupported type '" << options.weights << "' of weights; supported: bf16, f16";
  StringRef cache = getCacheType(options);
  if (cache == "f16" || cache == "bf16")
    pm.addPass(createConvertState({cache.str()}));
  else if (!cache.empty() && cache != "model")
    return emitError(loc) << "unsupported type '" << cache << "' of keys and values; supported: bf16, f16, model";
  std::string error;
  llvm::raw_string_ostream errors(error);
  if (!options.passPipeline.empty() && failed(parsePassPipeline(options.passPipeline, pm, errors)))
    return emitError(loc) << "cannot read the pass pipeline '" << options.passPipeline << "': " << getReason(error);
  return success();
}

} // namespace hone
