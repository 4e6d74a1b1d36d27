// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trials and pauses around the choice of DraftWidth.

#include "speculate/draft_length.h"

#include <algorithm>
#include <numeric>

namespace hone::speculate {
namespace {

constexpr int64_t kOneClass = 1;     // a model has no matches by which drafts would differ
constexpr double kTrialShare = 0.01; // of the time of passes without drafts, for a trial

} // namespace

int64_t DraftLength::choose(int64_t available, const DrafterCosts &costs) {
  available = std::min(available, most);
  if (available <= 0)
    return 0;
  int64_t chosen = width.choose({{}, kOneClass}, available, costs.perToken);
  if (chosen > 0) {
    pause = kLeastPause;
    return chosen;
  }
  if (passed < pause || costs.catchUp + costs.perToken > kTrialShare * secondsPassed)
    return 0;
  pause = std::min(2 * pause, kMostPause);
  return 1;
}

void DraftLength::record(int64_t drafted, int64_t accepted, double seconds, double secondsPerDraft) {
  passed = drafted > 0 ? 0 : passed + 1;
  secondsPassed = drafted > 0 ? 0 : secondsPassed + seconds;
  std::vector<int64_t> path(static_cast<size_t>(accepted));
  std::iota(path.begin(), path.end(), 1);
  width.record({{}, kOneClass}, drafted, path, seconds, secondsPerDraft);
}

} // namespace hone::speculate
