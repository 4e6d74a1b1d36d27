// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much a command says on standard error while it works.

#ifndef HONE_LIB_DRIVER_OPTIONS_PROGRESS_H
#define HONE_LIB_DRIVER_OPTIONS_PROGRESS_H

#include "OptionSet.h"
#include "hone/cli/progress.h"

namespace hone {

struct ProgressOptions {
  bool quiet = false;
  std::string style = "auto";

  void declare(OptionSet &set, llvm::StringRef whatIsQuiet) {
    set.add("quiet", quiet, whatIsQuiet);
    set.add("progress", style, "STYLE",
            "How to show progress on standard error: tty (a bar), plain (lines for a log), none, or auto (default: tty "
            "where it is a terminal, otherwise none)")
        .oneOf({"auto", "tty", "plain", "none"});
  }

  /// From here on progress is shown so.
  void apply() const {
    cli::setProgressStyle(quiet ? cli::ProgressStyle::None
                                : cli::parseProgressStyle(style).value_or(cli::ProgressStyle::Auto));
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_PROGRESS_H
