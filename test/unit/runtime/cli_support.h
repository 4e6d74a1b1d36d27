// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Commands of hone-run as a test calls them.

#ifndef HONE_TEST_UNIT_RUNTIME_CLI_SUPPORT_H
#define HONE_TEST_UNIT_RUNTIME_CLI_SUPPORT_H

#include "hone/cli/main.h"
#include "support.h"

#include <cstdio>

namespace hone::test {

/// The exit code of a command, and what it wrote to standard output and standard error.
struct Outcome {
  int code;
  std::string out, err;
};

inline Outcome run(const std::vector<std::string> &arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  int code = cli::runMain("hone-run", arguments);
  std::fflush(stdout);
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

} // namespace hone::test

#endif // HONE_TEST_UNIT_RUNTIME_CLI_SUPPORT_H
