// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is compiled for speculative decoding beside the model.

#ifndef HONE_LIB_DRIVER_OPTIONS_SPECULATION_H
#define HONE_LIB_DRIVER_OPTIONS_SPECULATION_H

#include "Options/Target.h"

namespace hone {

struct SpeculationOptions {
  std::string drafts; // of which shape, besides chains, drafts can be verified: tree, or empty

  void declare(OptionSet &set, const TargetOptions &target) {
    set.add("speculate", drafts, "SHAPE",
            "Add the entry 'verify' for drafts that are no chains: tree ('hone run --draft-tree')")
        .oneOf({"tree"})
        .needs("--tensor-parallel=1", [&target] { return target.ranks == 1; });
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_SPECULATION_H
