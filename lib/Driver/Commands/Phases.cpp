// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone phases`: the phases of a compilation, one a line.

#include "Phases.h"
#include "Command.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hone {

namespace {
struct PhasesOptions {
  explicit PhasesOptions(OptionSet &set) {
    set.add("target", device, "DEVICE", "Device that the phases are for: cpu (default) or cuda").oneOf({"cpu", "cuda"});
  }

  std::string device = "cpu";
};
} // namespace

static int runPhasesCommand(PhasesOptions &options) {
  for (const Phase &phase : getPhases(options.device))
    llvm::outs() << llvm::formatv("{0,-10}{1}\n", phase.name, phase.summary);
  return closeOutput(0);
}

extern const Command kPhasesCommand =
    makeCommand<PhasesOptions, runPhasesCommand>("phases", "list the phases of a compilation");

} // namespace hone
