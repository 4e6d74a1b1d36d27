// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --profile: a trace of every kernel call for a viewer, and sums of the same as a table.

#ifndef HONE_RUNTIME_CLI_PROFILE_H
#define HONE_RUNTIME_CLI_PROFILE_H

#include "core/module.h"
#include "hone/io/file.h"
#include "hone/io/output.h"

namespace hone::cli {

/// What --profile says about itself in the help of a command.
#define HONE_PROFILE_HELP                                                                                              \
  "  --profile FILE.json       write what every call and kernel took, as a trace for Perfetto or chrome://tracing;\n"  \
  "                            '-' prints the sums as a table on stderr instead; may be given twice\n"

/// A stretch of a call: one kernel, or the generated code between two.
struct ProfilePiece : rt::ProfiledSpan {
  const rt::ProfiledKernel *kernel; // null for generated code
  const char *next;                 // the kernel that follows generated code, or null at the end of the call
};

/// The call from its begin to its end; kernels that other threads called come in between, at their time.
std::vector<ProfilePiece> piecesOf(const rt::ProfiledCall &call);

/// "[1, 128], [1, 64]": the shapes of a call's inputs.
std::string inputsText(const rt::ProfiledCall &call);

/// Chrome's trace event format: complete events ("X"), times in microseconds.
absl::Status writeTrace(const rt::Profile &profile, const rt::Module &module, io::FileWriter &file);

/// Sums over the calls of each entry and input shapes: what share of their time each kernel, with each shape of weights, took.
std::string profileTable(const rt::Profile &profile);

/// Records for the targets of --profile, files or "-", and writes them.
class Profiler {
public:
  /// Opens the files, so that one that cannot be written, or is one of the `inputs`, is found before the work.
  absl::Status open(std::span<const std::string> targets, const io::InputFiles &inputs);

  /// What a module is to be loaded with; null where nothing was asked for.
  rt::Profile *recorder() { return files.empty() && !printsTable ? nullptr : &profile; }
  absl::Status write(const rt::Module &module);

private:
  std::vector<io::FileWriter> files;
  bool printsTable = false;
  rt::Profile profile;
};

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_PROFILE_H
