// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The handler calls what signal handlers may not call in general. It may here: a read of a mapped page raises the signal in the thread that
// reads, which is in no other library's function then.

#include "hone/io/mapped_faults.h"

#include "hone/io/printable.h"
#include "hone/io/temporary.h"

#include <atomic>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <unistd.h>

namespace hone::io {
namespace {

const char *programName;
void (*removeOthers)();

/// The file that is mapped at `address`, or "".
std::string fileAt(uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    int path = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &path) == 2 &&
        begin <= address && address < end)
      return path > 0 ? line.substr(static_cast<size_t>(path)) : "";
  }
  return "";
}

void endByFault(int signal, siginfo_t *fault, void *) {
  static std::atomic<bool> isEnding;
  if (isEnding.exchange(true))
    pause(); // the other thread ends the process
  std::string file = fileAt(reinterpret_cast<uintptr_t>(fault->si_addr));
  if (fault->si_code <= 0 || !file.starts_with('/')) { // not by a page, or of no file
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  std::string line = std::string(programName) + ": error: cannot read " + printable(file) +
                     ": it was truncated while it was in use, or its disk failed\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
  removeTemporaries();
  if (removeOthers)
    removeOthers();
  _exit(1);
}

} // namespace

void endOnMappedFault(const char *program, void (*alsoRemove)()) {
  programName = program;
  removeOthers = alsoRemove;
  struct sigaction action = {};
  action.sa_sigaction = endByFault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

} // namespace hone::io
