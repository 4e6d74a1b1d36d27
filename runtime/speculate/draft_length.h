// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many tokens a drafter is asked for that takes time for each of them.

#ifndef HONE_RUNTIME_SPECULATE_DRAFT_LENGTH_H
#define HONE_RUNTIME_SPECULATE_DRAFT_LENGTH_H

#include "speculate/draft_width.h"

namespace hone::speculate {

/// What it takes to draft, in seconds; 0 where that is not known.
struct DrafterCosts {
  double perToken = 0, catchUp = 0; // for each token; before the first, to follow the text
};

/// What a drafter took on average of late, in seconds; 0 before the first time.
struct DrafterTimes {
  double perToken = 0, perRow = 0; // for a drafted token; for a token of a text that it reads
};

/// Chooses by the expected tokens a second of drafting and verifying (DraftWidth). Where drafts do not pay, one token is drafted now and then
/// to see whether they do by now: where that takes a small share of the time since, and at the earliest after 16 passes, and after twice
/// as many each time that they do not, up to 256.
class DraftLength {
public:
  explicit DraftLength(int64_t most) : most(most), width(most) {}

  /// For the next pass: 0 to `available`.
  int64_t choose(int64_t available, const DrafterCosts &costs);
  /// A pass over a token and `drafted` others, of which `accepted` were; `seconds` are those of the pass alone, and drafting took
  /// `secondsPerDraft` for each.
  void record(int64_t drafted, int64_t accepted, double seconds, double secondsPerDraft = 0);

private:
  static constexpr int64_t kLeastPause = 16, kMostPause = 256;

  int64_t most;
  DraftWidth width;
  int64_t pause = kLeastPause, passed = 0; // passes without drafts until the next trial, and since the last draft
  double secondsPassed = 0;                // in those
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_DRAFT_LENGTH_H
