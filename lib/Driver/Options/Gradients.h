// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What gradients an artefact computes.

#ifndef HONE_LIB_DRIVER_OPTIONS_GRADIENTS_H
#define HONE_LIB_DRIVER_OPTIONS_GRADIENTS_H

#include "Options/Output.h"
#include "Options/Target.h"
#include "hone/Transforms/Passes.h"

namespace hone {

struct GradientOptions {
  std::string of;   // `parameters`, or names of parameters and inputs with commas; or empty
  std::string loss; // cross-entropy, or empty
  /// What makes a step of training of the gradients, which then is the only entry.
  std::optional<AddOptimizerOptions> optimizer;

  /// The function of the module that the loss is distilled from, if it is.
  struct Distillation {
    std::string teacher;
    double weight, temperature, featureWeight;
  };
  std::optional<Distillation> distillation;

  /// Whether products may be computed in bf16.
  bool roundsProducts = false;

  /// Instead: makes a step along a path of the weights of them.
  bool integrates = false;

  /// Whether parameters keep the names and shapes of the file because the caller names them.
  bool keepsParameters() const { return optimizer || integrates; }
  bool isAsked() const { return !of.empty(); }

  void declare(OptionSet &set, const TargetOptions &target, const PhaseOptions &phases) {
    set.add("gradients", of, "OF",
            "Add the entry 'gradients', of reverse mode: parameters, for the gradients of all, or names of parameters "
            "and "
            "inputs with commas ('hone run --entry=gradients')")
        .needs("--tensor-parallel=1", [&target] { return target.ranks == 1; })
        .check([&phases]() -> std::string {
          if (phases.startFrom.empty() || getPhaseNumber(phases.startFrom) <= getPhaseNumber("lower"))
            return "";
          return "expected --start-from=lower or an earlier phase with --gradients, but got --start-from=" +
                 phases.startFrom;
        });
    set.add("loss", loss, "LOSS",
            "What gradients are of: cross-entropy, of logits and the input 'targets' (default: the first output, whose "
            "gradient is an input)")
        .oneOf({"cross-entropy"})
        .needs("--gradients", [this] { return isAsked(); });
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_GRADIENTS_H
