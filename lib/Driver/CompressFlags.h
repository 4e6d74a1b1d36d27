// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of the command line that compress.

#ifndef HONE_LIB_DRIVER_COMPRESSFLAGS_H
#define HONE_LIB_DRIVER_COMPRESSFLAGS_H

#include "Compiler.h"

#include "llvm/Support/CommandLine.h"

namespace hone {

/// What commands that compress have in common.
struct CompressFlags {
  explicit CompressFlags(llvm::cl::SubCommand &command)
      : prune{"prune",
              llvm::cl::desc(
                  "Keep N of every M neighbouring inputs of weights, 2:4 for instance, and make the others 0; or "
                  "'structured': make the model smaller by --sparsity"),
              llvm::cl::value_desc("N:M|structured"), llvm::cl::sub(command)},
        pruneMethod{
            "prune-method",
            llvm::cl::desc(
                "How --prune chooses them: magnitude, wanda or sparsegpt, and with 'structured' magnitude, energy or "
                "obs (default: sparsegpt or obs with --calibration, else magnitude)"),
            llvm::cl::value_desc("METHOD"), llvm::cl::sub(command)},
        sparsity{"sparsity", llvm::cl::desc("Share of all parameters that goes with --prune=structured"),
                 llvm::cl::value_desc("PERCENT%"), llvm::cl::sub(command)},
        parts{"prune-parts",
              llvm::cl::desc("What goes with --prune=structured: channels, heads or both, or layers "
                             "(default: channels)"),
              llvm::cl::value_desc("PARTS"), llvm::cl::sub(command)},
        quantize{"quantize",
                 llvm::cl::desc("Store weight matrices as integers, and multiply them with activations of 8 bits: "
                                "int8, int4, int3 or int2"),
                 llvm::cl::value_desc("TYPE"), llvm::cl::sub(command)},
        quantizeMethod{
            "quantize-method",
            llvm::cl::desc("How --quantize rounds: rtn, to nearest; awq, of scaled channels; gptq; or to codebooks of "
                           "rows, squeezellm or squeezellm-gptq (default: gptq with --calibration, else rtn)"),
            llvm::cl::value_desc("METHOD"), llvm::cl::sub(command)},
        quantizeOutputs{
            "quantize-outputs",
            llvm::cl::desc("Integers for the layers that make the model's results (default: as --quantize)"),
            llvm::cl::value_desc("TYPE"), llvm::cl::sub(command)},
        group{"group",
              llvm::cl::desc("Inputs that share a scale with --quantize; 0: all (default: 0 for int8, else 64)"),
              llvm::cl::value_desc("N"), llvm::cl::sub(command)},
        calibration{"calibration",
                    llvm::cl::desc("Statistics of the model that hone calibrate wrote, for methods that use them"),
                    llvm::cl::value_desc("FILE"), llvm::cl::sub(command)} {}

  void writeTo(CompileOptions &options) const {
    options.prune = prune;
    options.pruneMethod = pruneMethod;
    options.sparsity = sparsity;
    options.pruneParts = parts;
    options.quantize = quantize;
    options.quantizeMethod = quantizeMethod;
    options.quantizeOutputs = quantizeOutputs;
    if (group.getNumOccurrences() > 0)
      options.group = group;
    options.calibration = calibration;
  }

  llvm::cl::opt<std::string> prune, pruneMethod, sparsity, parts, quantize, quantizeMethod, quantizeOutputs;
  llvm::cl::opt<int64_t> group;
  llvm::cl::opt<std::string> calibration;
};

/// What commands have in common that run what they compress.
struct FormFlags {
  explicit FormFlags(llvm::cl::SubCommand &command)
      : targetBits{"target-bits-per-weight",
                   llvm::cl::desc("Store weight matrices as integers of as many bits each as lose least, so that all "
                                  "weights take B bits an element"),
                   llvm::cl::value_desc("B"), llvm::cl::sub(command)},
        outliers{"outliers",
                 llvm::cl::desc("Share of the elements to keep in f16 beside the integers of --quantize: 0.45%, say"),
                 llvm::cl::value_desc("SHARE"), llvm::cl::sub(command)},
        outlierMethod{
            "outlier-method",
            llvm::cl::desc(
                "How --outliers chooses: magnitude, sensitivity or spqr (default: sensitivity with "
                "--sensitivities, and with squeezellm and --calibration; magnitude with squeezellm alone; else "
                "spqr)"),
            llvm::cl::value_desc("METHOD"), llvm::cl::sub(command)},
        sensitivities{"sensitivities",
                      llvm::cl::desc("Safetensors file with the sensitivity of each element of the weights"),
                      llvm::cl::value_desc("FILE"), llvm::cl::sub(command)} {}

  void writeTo(CompileOptions &options) const {
    if (targetBits.getNumOccurrences() > 0)
      options.targetBits = targetBits;
    options.outliers = outliers;
    options.outlierMethod = outlierMethod;
    options.sensitivities = sensitivities;
  }

  llvm::cl::opt<double> targetBits;
  llvm::cl::opt<std::string> outliers, outlierMethod, sensitivities;
};

} // namespace hone

#endif // HONE_LIB_DRIVER_COMPRESSFLAGS_H
