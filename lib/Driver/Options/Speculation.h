// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is compiled for speculative decoding beside the model.

#ifndef HONE_LIB_DRIVER_OPTIONS_SPECULATION_H
#define HONE_LIB_DRIVER_OPTIONS_SPECULATION_H

#include "Options/Target.h"

namespace hone {

struct SpeculationOptions {
  std::string drafts; // which drafts can be verified besides chains of one sequence: tree, batch, or empty

  void declare(OptionSet &set, const TargetOptions &target) {
    set.add(
           "speculate", drafts, "DRAFTS",
           "Verify other drafts than chains of one sequence: tree adds the entry 'verify' for those that are no chains "
           "('hone run --draft-tree'), batch lets sequences have lengths of their own ('hone run --batch')")
        .oneOf({"tree", "batch"})
        .needs("--tensor-parallel=1", [&target] { return target.ranks == 1; });
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_SPECULATION_H
