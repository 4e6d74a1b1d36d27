// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much a command says on standard error while it works.

#ifndef HONE_LIB_DRIVER_PROGRESSFLAGS_H
#define HONE_LIB_DRIVER_PROGRESSFLAGS_H

#include "FlagChecks.h"
#include "hone/cli/progress.h"

namespace hone {

struct ProgressFlags {
  ProgressFlags(llvm::cl::SubCommand &command, llvm::StringRef whatIsQuiet)
      : quiet{"quiet", llvm::cl::desc(whatIsQuiet), llvm::cl::sub(command)},
        style{"progress",
              llvm::cl::desc(
                  "How to show progress on standard error: tty (a bar), plain (lines for a log), none, or auto "
                  "(default: tty where it is a terminal, otherwise none)"),
              llvm::cl::value_desc("STYLE"), llvm::cl::init("auto"), llvm::cl::sub(command)} {}

  /// From here on progress is shown so. Fails with a message where the style is none of these.
  llvm::LogicalResult apply() const {
    std::optional<cli::ProgressStyle> parsed = cli::parseProgressStyle(style);
    if (!parsed) {
      fail("unsupported --progress '" + style + "'; supported: auto, tty, plain, none");
      return llvm::failure();
    }
    cli::setProgressStyle(quiet ? cli::ProgressStyle::None : *parsed);
    return llvm::success();
  }

  llvm::cl::opt<bool> quiet;
  llvm::cl::opt<std::string> style;
};

} // namespace hone

#endif // HONE_LIB_DRIVER_PROGRESSFLAGS_H
