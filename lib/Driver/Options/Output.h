// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a compilation writes, and which of its phases run.

#ifndef HONE_LIB_DRIVER_OPTIONS_OUTPUT_H
#define HONE_LIB_DRIVER_OPTIONS_OUTPUT_H

#include "OptionSet.h"
#include "Phases.h"

namespace hone {

struct OutputOptions {
  std::string path;                // the artefact's folder, or a file
  std::string tokenizer;           // tokenizer.json to ship, or empty
  std::string generationConfig;    // generation_config.json, or empty
  std::string modelConfig;         // config.json, for what that does not say, or empty
  std::string saveIr;              // folder for the IR after every phase, or empty
  std::string remarks;             // YAML file for the remarks of all passes, or empty
  std::vector<std::string> others; // that the command writes beside these

  void declare(OptionSet &set) {
    set.add("o", path, "MODEL.hone", "Folder of the artefact (default: the model's name with .hone)");
    set.add("tokenizer", tokenizer, "FILE",
            "tokenizer.json to ship in the artefact, or source.spm of a Marian model, beside vocab.json");
    set.add("save-ir", saveIr, "DIR", "Write the IR after every phase into DIR");
    declareRemarks(set);
  }

  void declareGeneration(OptionSet &set) {
    set.add("generation-config", generationConfig, "FILE",
            "generation_config.json: tokens that texts begin and end with (default: that of FOLDER)");
  }

  void declareRemarks(OptionSet &set) {
    set.add("remarks", remarks, "FILE", "Write every decision of the passes as YAML remarks");
  }
};

struct PhaseOptions {
  std::string startFrom, stopAfter; // phases, or empty
  std::string passes;               // of the rewrite phase, after those of other options

  void declare(OptionSet &set) {
    set.add("start-from", startFrom, "PHASE", "Begin with PHASE: the input is IR from the phase before")
        .oneOf(listPhaseNames());
    set.add("stop-after", stopAfter, "PHASE", "Write the IR after PHASE (to -o or standard output) and stop")
        .oneOf(listPhaseNames());
    set.add("pass-pipeline", passes, "PASSES", "Passes of the rewrite phase");
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_OUTPUT_H
