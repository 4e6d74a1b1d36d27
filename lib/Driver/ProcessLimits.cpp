// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ends the process may come from any thread and with no memory left.

#include "ProcessLimits.h"

#include "Threads.h"
#include "hone/io/temporary.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/Threading.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace hone {

/// What removing files takes when nothing else is left.
static constexpr size_t kReserve = size_t(1) << 20;
static std::atomic<void *> reserve;
static std::atomic<bool> isEnding;
/// The bytes of --memory-limit, or 0.
static std::atomic<int64_t> memoryLimit;

static void setSoftLimit(__rlimit_resource_t resource, rlim_t value) {
  rlimit limit = {};
  if (getrlimit(resource, &limit) != 0)
    return;
  limit.rlim_cur = std::min(value, limit.rlim_max);
  setrlimit(resource, &limit);
}

/// Says why, removes what was begun and ends; the first thread that comes here does.
[[noreturn]] static void endProcess(const char *reason) {
  if (isEnding.exchange(true)) {
    std::this_thread::sleep_for(std::chrono::seconds(10)); // the other thread ends the process meanwhile
    _exit(1);
  }
  setSoftLimit(RLIMIT_DATA, RLIM_INFINITY);
  std::free(reserve.exchange(nullptr));
  (void)!write(STDERR_FILENO, reason, std::strlen(reason));
  io::removeTemporaries();
  llvm::sys::RunInterruptHandlers();
  _exit(1);
}

static void endByMemory(void *, const char *, bool) {
  char reason[160] = "hone: error: cannot allocate memory\n";
  if (int64_t bytes = memoryLimit)
    (void)std::snprintf(reason, sizeof reason,
                        "hone: error: cannot allocate memory: the limit is %lld bytes; --memory-limit sets it\n",
                        static_cast<long long>(bytes));
  endProcess(reason);
}

void endWhereMemoryEnds() {
  reserve = std::malloc(kReserve);
  if (void *bytes = reserve)
    std::memset(bytes, 1, kReserve); // so that the system has given it
  llvm::install_bad_alloc_error_handler(endByMemory);
}

void limitMemory(int64_t bytes) {
  memoryLimit = bytes;
  // Unlike RLIMIT_AS, this does not count files that are mapped: weights, and what is made of them, may be larger than memory.
  setSoftLimit(RLIMIT_DATA, static_cast<rlim_t>(bytes));
}

static double getSeconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void limitTime(int64_t seconds) {
  int64_t processors = std::max<int64_t>(llvm::hardware_concurrency().compute_thread_count(), 1);
  constexpr int64_t grace = 5;                            // by then this thread has ended the process
  setSoftLimit(RLIMIT_CPU, seconds * processors + grace); // also of ptxas, which is another process
  double end = getSeconds(CLOCK_MONOTONIC) + static_cast<double>(seconds);
  if (!canMakeThreads(1))
    endProcess("hone: error: cannot make the thread that --time-limit needs\n");
  std::thread([=] {
    double cpuEnd = static_cast<double>(seconds) * static_cast<double>(processors);
    for (;;) {
      double left = std::min(end - getSeconds(CLOCK_MONOTONIC),
                             (cpuEnd - getSeconds(CLOCK_PROCESS_CPUTIME_ID)) / static_cast<double>(processors));
      if (left <= 0)
        break;
      std::this_thread::sleep_for(std::chrono::duration<double>(std::max(left, 0.01)));
    }
    char reason[160];
    (void)std::snprintf(reason, sizeof reason,
                        "hone: error: cannot go on: the limit is %lld seconds; --time-limit sets it\n",
                        static_cast<long long>(seconds));
    endProcess(reason);
  }).detach();
}

} // namespace hone
