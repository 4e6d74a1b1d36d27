// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts of drafted tokens and the times of drafting, verification and commit, as a pass goes through them.

#ifndef HONE_RUNTIME_GENERATE_SPECULATION_CLOCK_H
#define HONE_RUNTIME_GENERATE_SPECULATION_CLOCK_H

#include "core/language_model.h"

#include <chrono>

namespace hone::rt {

/// One a pass, from its beginning on.
class SpeculationClock {
public:
  explicit SpeculationClock(SpeculationStatistics &statistics) : statistics(statistics) {}

  void endDraft(size_t drafted) {
    statistics.drafted += static_cast<int64_t>(drafted);
    statistics.draftSeconds += lap();
  }
  void endVerification(size_t accepted) {
    statistics.accepted += static_cast<int64_t>(accepted);
    statistics.verifySeconds += lap();
  }
  void endCommit() { statistics.commitSeconds += lap(); }

private:
  double lap() {
    auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last, now)).count();
  }

  SpeculationStatistics &statistics;
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_SPECULATION_CLOCK_H
