// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a command reports of a compression.

#ifndef HONE_LIB_DRIVER_OPTIONS_REPORTS_H
#define HONE_LIB_DRIVER_OPTIONS_REPORTS_H

#include "OptionSet.h"

namespace hone {

struct ReportOptions {
  std::vector<std::string> files; // .html or .json
  std::string tokens;             // .npy to measure perplexity on, before and after, or empty
  int64_t window = 512;
  bool summary = false; // say on standard error what a compression did

  void declare(OptionSet &set) {
    set.add("report", files, "FILE", "Write what became of each weight to FILE, .html or .json; may be given for each");
  }

  /// Those of commands that compile what they compress.
  void declarePerplexity(OptionSet &set) {
    set.add("report-tokens", tokens, "FILE.npy",
            "Also say there how well the model predicts these tokens, before and after")
        .needs("--report", [this] { return !files.empty(); });
    set.add("report-window", window, "N", "Tokens a window there; windows do not overlap (default: 512)").upTo();
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_REPORTS_H
