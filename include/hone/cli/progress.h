// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is said on stderr about work that takes its time.

#ifndef HONE_CLI_PROGRESS_H
#define HONE_CLI_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hone::cli {

/// How progress is shown: `Auto` is `Terminal` where stderr is one, and `None` otherwise.
enum class ProgressStyle {
  Auto,
  Terminal, // a bar in a line that is written again and again, and disappears
  Plain,    // lines for a log: the beginning, and how far it is from time to time
  None
};

/// "auto", "tty", "plain" or "none".
std::optional<ProgressStyle> parseProgressStyle(std::string_view name);
/// For all of this process's stderr, from here on; `Auto` before.
void setProgressStyle(ProgressStyle style);
/// What is shown; never `Auto`.
ProgressStyle getProgressStyle();

/// Written to a terminal, makes the line empty that it is in.
inline constexpr char kClearLine[] = "\r\033[K";

/// With `Auto`, the line on a terminal appears after a second. It is gone with the object.
class Progress {
public:
  /// `what` is done in `total` steps: "evaluating windows" 128.
  Progress(std::string what, int64_t total);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// Says that `done` steps are done, and, where that helps, what `item` the next one is about.
  void update(int64_t done, std::string_view item = {});

private:
  using Clock = std::chrono::steady_clock;
  void draw(int64_t done, std::string_view item) const;
  std::string estimate(int64_t done) const;

  std::string what;
  int64_t total;
  ProgressStyle style;
  bool shown = false;
  Clock::time_point start, due; // `due`: the next line
};

} // namespace hone::cli

#endif // HONE_CLI_PROGRESS_H
