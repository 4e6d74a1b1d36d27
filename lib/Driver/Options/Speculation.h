// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is compiled for speculative decoding beside the model.

#ifndef HONE_LIB_DRIVER_OPTIONS_SPECULATION_H
#define HONE_LIB_DRIVER_OPTIONS_SPECULATION_H

#include "Options/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace hone {

struct SpeculationOptions {
  std::string
      drafts; // which drafts can be verified besides chains of one sequence: tree, batch, both with a comma between, or empty

  bool takesTrees() const { return llvm::StringRef(drafts).contains("tree"); }
  bool takesBatches() const { return llvm::StringRef(drafts).contains("batch"); }

  std::string checkDrafts() const {
    llvm::SmallVector<llvm::StringRef> words;
    llvm::StringRef(drafts).split(words, ',');
    bool areTwice = words.size() == 2 && words[0] == words[1];
    bool areKnown = words.size() <= 2 &&
                    llvm::all_of(words, [](llvm::StringRef word) { return word == "tree" || word == "batch"; });
    return areKnown && !areTwice ? "" : "unsupported --speculate=" + drafts + "; supported: tree, batch, tree,batch";
  }

  void declare(OptionSet &set, const TargetOptions &target) {
    set.add(
           "speculate", drafts, "DRAFTS",
           "Verify other drafts than chains of one sequence: tree adds the entry 'verify' for those that are no chains "
           "('hone run --draft-tree'), batch lets sequences have lengths of their own ('hone run --batch'), and "
           "tree,batch "
           "lets them have trees of their own too")
        .check([this] { return checkDrafts(); })
        .needs("--tensor-parallel=1", [&target] { return target.ranks == 1; });
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_SPECULATION_H
