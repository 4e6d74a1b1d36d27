// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How weights are pruned and quantized. What a pass takes as it is said here is bound to the pass's own option.

#ifndef HONE_LIB_DRIVER_OPTIONS_COMPRESSION_H
#define HONE_LIB_DRIVER_OPTIONS_COMPRESSION_H

#include "OptionSet.h"
#include "hone/Transforms/Passes.h"

namespace hone {

struct PruningOptions {
  std::string pattern; // elements to keep, as N:M; or `structured`, for a smaller model; or empty
  std::string method;  // empty: as there are statistics for
  std::string sparsity,
      parts; // with `structured`: the share of the parameters that goes (25% or 0.25), and what may go
  PruneNmOptions nm;

  bool isStructured() const { return pattern == "structured"; }
  bool isPlanned() const { return pattern == "auto"; } // of `hone tune`, which replaces it
  bool isAsked() const { return !pattern.empty(); }

  void declare(OptionSet &set) {
    declare(set, "N:M|structured",
            "Keep N of every M neighbouring inputs of weights, 2:4 for instance, and make the others 0; or "
            "'structured': make the model smaller by --sparsity");
  }

  /// With other values and help of --prune.
  void declare(OptionSet &set, llvm::StringRef values, llvm::StringRef help) {
    declarePattern(set, values, help);
    set.add("sparsity", sparsity, "PERCENT%", "Share of all parameters that goes with --prune=structured")
        .needs("--prune=structured", [this] { return isStructured(); });
  }

  /// Without --sparsity.
  void declarePattern(OptionSet &set, llvm::StringRef values, llvm::StringRef help) {
    set.add("prune", pattern, values, help);
    set.add("prune-method", method, "METHOD",
            "How --prune chooses them: magnitude, wanda or sparsegpt, and with 'structured' magnitude, energy or "
            "obs (default: sparsegpt or obs with --calibration, else magnitude)")
        .needs("--prune", [this] { return isAsked(); });
    set.add("prune-parts", parts, "PARTS",
            "What goes with --prune=structured: channels, heads or both, or layers (default: channels)")
        .needs("--prune=structured", [this] { return isStructured() || isPlanned(); });
  }

  void declareOutputs(OptionSet &set) {
    set.add("prune-outputs", nm.outputs, "With --prune=N:M, prune the layers that make the model's results too")
        .needs("--prune=N:M", [this] { return isAsked() && !isStructured(); });
  }
};

struct QuantizationOptions {
  std::string type,
      outputType;     // integers to store weight matrices as, and the last layer's; empty: none, and as the others
  std::string method; // empty: as there are statistics for
  std::optional<int64_t> group;     // inputs that share a scale; 0: all of a row
  std::optional<double> targetBits; // for each element of a weight that the model may take, in place of `type`
  std::string outlierMethod;        // empty: as there is data for
  QuantizeWeightsOptions pass;

  bool isAsked() const { return !type.empty() || targetBits.has_value(); }
  /// Whether weights are rounded to codebooks of rows, in place of multiples of a scale.
  bool hasCodebooks() const { return llvm::StringRef(method).starts_with("squeezellm"); }

  void declare(OptionSet &set) {
    const std::vector<llvm::StringRef> types = {"int8", "int6", "int5", "int4", "int3", "int2"};
    set.add("quantize", type, "TYPE",
            "Store weight matrices as integers, and multiply them with activations of 8 bits: int8, int6, int5, int4, "
            "int3 or int2")
        .oneOf(types)
        .check([this] { return targetBits ? "expected --quantize or --target-bits-per-weight, but got both" : ""; });
    set.add(
           "quantize-method", method, "METHOD",
           "How --quantize rounds: rtn, to nearest; awq, of scaled channels; gptq; or to codebooks of rows, squeezellm "
           "or squeezellm-gptq (default: gptq with --calibration, else rtn)")
        .needs("--quantize", [this] { return isAsked(); })
        .check([this] { return hasCodebooks() ? findCodebookFault() : ""; });
    set.add("quantize-outputs", outputType, "TYPE",
            "Integers for the layers that make the model's results (default: as --quantize)")
        .oneOf(types)
        .needs("--quantize", [this] { return !type.empty(); });
    set.add("group", group, "N", "Inputs that share a scale with --quantize; 0: all (default: 0 for int8, else 64)")
        .oneOf({"0", "32", "64", "128"});
  }

  void declareForms(OptionSet &set) {
    auto outliers = [this] { return !pass.outliers.empty(); };
    set.add("target-bits-per-weight", targetBits, "B",
            "Store weight matrices as integers of as many bits each as lose least, so that all weights take B bits an "
            "element");
    set.add("outliers", pass.outliers, "SHARE",
            "Share of the elements to keep in f16 beside the integers of --quantize: 0.45%, say")
        .needs("--quantize", [this] { return !type.empty(); });
    set.add("outlier-method", outlierMethod, "METHOD",
            "How --outliers chooses: magnitude, sensitivity or spqr (default: sensitivity with --sensitivities, and "
            "with "
            "squeezellm and --calibration; magnitude with squeezellm alone; else spqr)")
        .needs("--outliers", outliers);
    set.add("outlier-shares", pass.outlierShares, "FILE",
            "Sensitivities of each element, as 'hone calibrate --pqi' writes them: --outliers is a share of all "
            "weights together, and "
            "each gets as many as it has of the most sensitive elements")
        .needs("--outliers", outliers);
    set.add("sensitivities", pass.sensitivities, "FILE",
            "Safetensors file with the sensitivity of each element of the weights")
        .needs("--outliers", [this, outliers] { return outliers() || method == "squeezellm"; });
  }

private:
  std::string findCodebookFault() const {
    if (!group && !targetBits)
      return "";
    return std::string("expected no ") + (group ? "--group" : "--target-bits-per-weight") +
           " with --quantize-method=" + method + ": it has codebooks of whole rows";
  }
};

struct CompressionOptions {
  PruningOptions pruning;
  QuantizationOptions quantization;
  std::string statistics; // that hone calibrate wrote, for methods that read them, or empty

  bool isAsked() const { return pruning.isAsked() || quantization.isAsked(); }

  /// Those of all commands that compress.
  void declare(OptionSet &set) {
    pruning.declare(set);
    quantization.declare(set);
    set.add("calibration", statistics, "FILE",
            "Statistics of the model that hone calibrate wrote, for methods that use them")
        .needs("--prune or --quantize", [this] { return isAsked(); });
  }

  /// Those of commands that run what they compress, too.
  void declareForms(OptionSet &set) { quantization.declareForms(set); }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_COMPRESSION_H
