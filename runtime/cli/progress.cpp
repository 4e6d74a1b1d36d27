// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Progress on a terminal, and in logs.

#include "hone/cli/progress.h"

#include "hone/io/printable.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace hone::cli {
namespace {

/// Before the first line on a terminal that nobody asked for, and between two.
constexpr std::chrono::milliseconds kSilence{1000}, kInterval{200};
/// Between two lines of a log.
constexpr std::chrono::seconds kLogInterval{10};
constexpr int64_t kBarColumns = 20, kUsualColumns = 80;

std::atomic<ProgressStyle> chosen = ProgressStyle::Auto;

int64_t countColumns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

} // namespace

std::optional<ProgressStyle> parseProgressStyle(std::string_view name) {
  for (auto [known, style] : {std::pair("auto", ProgressStyle::Auto), std::pair("tty", ProgressStyle::Terminal),
                              std::pair("plain", ProgressStyle::Plain), std::pair("none", ProgressStyle::None)})
    if (name == known)
      return style;
  return std::nullopt;
}

void setProgressStyle(ProgressStyle style) { chosen = style; }

ProgressStyle getProgressStyle() {
  if (chosen != ProgressStyle::Auto)
    return chosen;
  return isatty(STDERR_FILENO) ? ProgressStyle::Terminal : ProgressStyle::None;
}

Progress::Progress(std::string what, int64_t total)
    : what(std::move(what)), total(total), style(getProgressStyle()), start(Clock::now()),
      due(chosen == ProgressStyle::Auto ? start + kSilence : start) {}

Progress::~Progress() {
  if (shown && style == ProgressStyle::Terminal)
    std::fputs(kClearLine, stderr);
}

/// "3:05 left", once something is known of it.
std::string Progress::estimate(int64_t done) const {
  if (done <= 0)
    return "";
  double passed = std::chrono::duration<double>(Clock::now() - start).count();
  auto left = std::llround(passed / static_cast<double>(done) * static_cast<double>(total - done));
  char text[32];
  std::snprintf(text, sizeof(text), ", %lld:%02lld left", left / 60, left % 60);
  return text;
}

void Progress::draw(int64_t done, std::string_view item) const {
  std::string count = std::to_string(done) + " of " + std::to_string(total) + estimate(done);
  std::string about = item.empty() ? "" : ", " + io::printable(item);
  if (style == ProgressStyle::Plain) {
    std::fprintf(stderr, "%s: %s%s\n", what.c_str(), count.c_str(), about.c_str());
    return;
  }
  int64_t filled = total > 0 ? std::clamp(kBarColumns * done / total, int64_t(0), kBarColumns) : kBarColumns;
  std::string line =
      what + " [" + std::string(filled, '#') + std::string(kBarColumns - filled, '.') + "] " + count + about;
  line.resize(std::min(line.size(), static_cast<size_t>(countColumns() - 1))); // a second line would stay
  std::fprintf(stderr, "%s%s", kClearLine, line.c_str());
}

void Progress::update(int64_t done, std::string_view item) {
  auto now = Clock::now();
  if (style == ProgressStyle::None || now < due)
    return;
  due = now + (style == ProgressStyle::Plain ? std::chrono::milliseconds(kLogInterval) : kInterval);
  shown = true;
  draw(done, item);
}

} // namespace hone::cli
