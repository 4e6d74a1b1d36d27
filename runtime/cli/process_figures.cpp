// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cli/process_figures.h"

#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <omp.h>
#include <sstream>
#include <unistd.h>

namespace hone::cli {

double secondsSinceStart() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  // Field 22, counted after the name, which may hold anything but ends with the last parenthesis (proc(5)).
  constexpr int fieldsBetween = 19;
  std::istringstream fields(text.substr(std::min(text.rfind(')'), text.size() - 1) + 1));
  std::string skipped;
  for (int i = 0; i < fieldsBetween; ++i)
    fields >> skipped;
  double ticks = 0;
  fields >> ticks;
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
         ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int64_t peakMemory() {
  std::ifstream file("/proc/self/status");
  constexpr int64_t kibibyte = 1024;
  int64_t kibibytes = 0;
  for (std::string line; std::getline(file, line);)
    if (std::sscanf(line.c_str(), "VmHWM: %" SCNd64, &kibibytes) == 1)
      break;
  return kibibytes * kibibyte;
}

int64_t artefactBytes(const rt::Module &module) {
  int64_t total = 0;
  for (const auto &[file, bytes] : module.manifest().fileBytes)
    total += static_cast<int64_t>(bytes);
  return total;
}

int threadCount(int64_t threads) { return threads > 0 ? static_cast<int>(threads) : omp_get_max_threads(); }

} // namespace hone::cli
