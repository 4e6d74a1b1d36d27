// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The commands that run artefacts, for hone-run and for the driver, which offers the same ones.

#ifndef HONE_CLI_MAIN_H
#define HONE_CLI_MAIN_H

#include "hone/runtime/limits.h"

#include <string>
#include <vector>

namespace hone::cli {

/// Most threads that --threads takes.
using rt::kMostThreads;

/// A command, as overviews list it.
struct CommandSummary {
  std::string name, summary;
};

/// The commands of this library, in the order of the overview.
std::vector<CommandSummary> listRunCommands();

/// True for a command of this library.
bool isRunCommand(const std::string &command);

/// Runs `program command arguments…`, where `arguments` begins with the command. Returns the exit code: 0, 1 for a fault
/// of the caller or of a file, 2 for one of Hone. Messages begin with `program`.
int runMain(const std::string &program, const std::vector<std::string> &arguments);

} // namespace hone::cli

#endif // HONE_CLI_MAIN_H
