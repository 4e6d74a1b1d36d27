// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A line on stderr about work that takes more than a second.

#ifndef HONE_RUNTIME_CLI_PROGRESS_H
#define HONE_RUNTIME_CLI_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <string>

namespace hone::cli {

/// Silent where stderr is no terminal, and for the first second. The line disappears with the object.
class Progress {
public:
  /// `what` happens `total` times: "evaluating" 128.
  Progress(std::string what, int64_t total);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// Says that `done` of the total are done.
  void update(int64_t done);

private:
  std::string what;
  int64_t total;
  bool onTerminal, shown = false;
  std::chrono::steady_clock::time_point start, last;
};

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_PROGRESS_H
