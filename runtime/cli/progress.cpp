// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Progress on a terminal.

#include "cli/progress.h"

#include <cstdio>
#include <unistd.h>
#include <utility>

namespace hone::cli {
namespace {

constexpr std::chrono::milliseconds kSilence{1000}, kInterval{200};

} // namespace

Progress::Progress(std::string what, int64_t total)
    : what(std::move(what)), total(total), onTerminal(isatty(STDERR_FILENO)), start(std::chrono::steady_clock::now()),
      last(start) {}

Progress::~Progress() {
  if (shown)
    std::fputs("\r\033[K", stderr);
}

void Progress::update(int64_t done) {
  auto now = std::chrono::steady_clock::now();
  if (!onTerminal || now - start < kSilence || now - last < kInterval)
    return;
  last = now;
  shown = true;
  double passed = std::chrono::duration<double>(now - start).count();
  double left = done > 0 ? passed / static_cast<double>(done) * static_cast<double>(total - done) : 0;
  std::fprintf(stderr, "\r\033[K%s: %lld of %lld, %.0f s left", what.c_str(), static_cast<long long>(done),
               static_cast<long long>(total), left);
}

} // namespace hone::cli
