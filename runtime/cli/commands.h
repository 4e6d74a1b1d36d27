// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The commands, one file each, and what they share.

#ifndef HONE_RUNTIME_CLI_COMMANDS_H
#define HONE_RUNTIME_CLI_COMMANDS_H

#include "cli/options.h"
#include "core/language_model.h"
#include "hone/cli/main.h"
#include "hone/io/printable.h"

#include <cstdio>

namespace hone::cli {

/// A command: what help says about it, and its body, which gets the arguments after its name.
struct Command {
  const char *name;
  const char *summary; // one line of the overview
  const char *help;
  absl::Status (*run)(std::span<const std::string> arguments);
  /// Adds the command's options to a parser, for checking that help names them all.
  std::vector<std::string> (*optionNames)();
};

/// All commands, in the order of the overview: each is k<Name>Command in a file of its own, which a row of CMakeLists.txt names.
std::span<const Command *const> listCommands();

/// Loads an artefact as rt::Module::load does. Of several processes that run it together, rank 0 alone prints from then on.
absl::StatusOr<std::shared_ptr<const rt::Module>> loadModule(const std::string &path, rt::Profile *profile = nullptr);

/// Prints the parts as one line on standard output, escaped as io::printable says: parts may be names out of a file.
template <typename... Parts> void printLine(const Parts &...parts) {
  std::puts(io::printable(io::cat(parts...)).c_str());
}

/// The one positional argument, the artefact.
absl::StatusOr<std::string> onlyModel(const std::vector<std::string> &positionals);

/// Token ids of a .npy of uint16, int32 or int64: one row of a vector, or the rows of a matrix.
absl::StatusOr<std::vector<std::vector<int64_t>>> readTokens(const std::string &path);

/// The same of a file that has to have one row.
absl::StatusOr<std::vector<int64_t>> readTokenRow(const std::string &path);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_COMMANDS_H
