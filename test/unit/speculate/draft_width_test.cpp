// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many drafted tokens are verified, by times and acceptance that are made up.

#include "speculate/draft_width.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

namespace hone::test {
namespace {

using speculate::Draft;
using speculate::DraftWidth;

constexpr int64_t kToken = 1, kOther = 2;

Draft draftOf(int64_t tokens, int64_t matched, size_t drafter = 0) {
  return {{std::vector(static_cast<size_t>(tokens), kToken)}, matched, drafter};
}

/// The nodes of a chain that are accepted.
std::vector<int64_t> pathOf(int64_t accepted) {
  std::vector<int64_t> path(static_cast<size_t>(accepted));
  std::iota(path.begin(), path.end(), 1);
  return path;
}

/// Passes over drafts of `available` tokens, of which `right` would be accepted; a pass takes `perRow` seconds a row, and no less than 1.
/// Returns how many were verified at last.
int64_t runPasses(DraftWidth &width, int64_t available, int64_t right, double perRow, int passes = 200) {
  Draft draft = draftOf(available, 5);
  for (int pass = 0; pass < passes; ++pass) {
    int64_t drafted = width.choose(draft);
    width.record(draft, drafted, pathOf(std::min(drafted, right)),
                 std::max(1.0, perRow * static_cast<double>(drafted + 1)));
    if (drafted == 0)
      width.observe(draft, right > 0 ? kToken : kOther);
  }
  return width.choose(draft);
}

TEST(DraftWidth, TakesAllWhereRowsCostNothing) {
  DraftWidth width(32);
  EXPECT_EQ(runPasses(width, 20, 20, 0), 20);
  EXPECT_EQ(runPasses(width, 100, 100, 0), 32) << "no more than was allowed";
}

TEST(DraftWidth, StopsWhereRowsBeginToCost) {
  DraftWidth width(32);
  EXPECT_LE(runPasses(width, 32, 1, 1.0 / 8), 7) << "the others would be refused, and rows beyond eight are not free";
}

TEST(DraftWidth, TurnsItselfOffAndOnAgain) {
  DraftWidth width(32);
  EXPECT_EQ(runPasses(width, 16, 0, 0.9), 0) << "each pass costs more than one token, and gives one";
  EXPECT_GT(runPasses(width, 16, 16, 0.9), 0) << "drafts that were not verified turn out to be right";
}

TEST(DraftWidth, TakesNothingWithoutADraft) {
  DraftWidth width(8);
  EXPECT_EQ(width.choose(draftOf(0, 3)), 0);
  EXPECT_EQ(width.choose(draftOf(4, 0)), 0);
}

TEST(DraftWidth, AWidthThatIsTriedAgainIsKnownAgain) {
  // Two rows take twice the time of one, which does not pay. Long after that was seen it is tried again, and once is enough.
  DraftWidth width(1);
  Draft draft = draftOf(1, 5);
  for (int pass = 0; pass < 20; ++pass)
    width.record(draft, 1, pathOf(1), 2);
  for (int pass = 0; pass < 100; ++pass)
    width.record({}, 0, {}, 1);
  EXPECT_EQ(width.choose(draft), 1);
  width.record(draft, 1, pathOf(1), 2);
  EXPECT_EQ(width.choose(draft), 0);
}

TEST(DraftWidth, CountsEachDrafterAlone) {
  DraftWidth width(8, /*drafters=*/2);
  width.record({}, 0, {}, 1);
  for (int pass = 0; pass < 100; ++pass) {
    width.record(draftOf(4, 5, 0), 4, pathOf(4), 1);
    width.observe(draftOf(4, 5, 1), kOther);
  }
  EXPECT_EQ(width.choose(draftOf(4, 5, 0)), 4);
  EXPECT_EQ(width.choose(draftOf(4, 5, 1)), 0) << "where another is right, this one is wrong";
}

TEST(DraftWidth, ADraftThatIsNotVerifiedCountsOnce) {
  // Of all drafts .98 * .98 of 1 are accepted, of 3.9 tried, which is 0.246; that counts for two of this match, of which one more was wrong, which
  // is 0.164. Counted twice, it would be 0.098. Two rows pay from (1 + acceptance) / 1.05 on.
  constexpr double threshold = 0.130, decay = 0.99; // of the time of two rows with the last pass
  DraftWidth width(1);
  Draft other = draftOf(1, 100), draft = draftOf(1, 5);
  width.record(other, 1, {}, (1 + threshold) / 1.05 / decay);
  width.record(draft, 0, {}, 1);
  width.observe(draft, kOther);
  EXPECT_EQ(width.choose(draft), 1);
}

TEST(DraftWidth, TheFirstPassHasNoDraftAndTheNextAreShort) {
  DraftWidth width(32);
  EXPECT_EQ(width.choose(draftOf(32, 5)), 0);
  width.record(draftOf(32, 5), 0, {}, 1);
  for (int64_t expected : {2, 4, 8, 16, 32, 32}) {
    EXPECT_EQ(width.choose(draftOf(32, 5)), expected);
    width.record(draftOf(32, 5), expected, pathOf(expected), 1);
  }
}

TEST(DraftWidth, ShortAndLongMatchesLearnFromOneAnother) {
  DraftWidth width(2);
  width.record({}, 0, {}, 1);
  for (int pass = 0; pass < 20; ++pass)
    width.observe(draftOf(2, 5), kOther);
  width.record(draftOf(2, 5), 2, {}, 1.2);
  EXPECT_EQ(width.choose(draftOf(2, 50)), 0) << "this drafter was wrong all the time";
}

TEST(DraftWidth, WhatDraftsGainedTheyMayLose) {
  DraftWidth width(32);
  EXPECT_EQ(runPasses(width, 32, 32, 0, 20), 32);
  width.record(draftOf(32, 5), 32, {}, 20);
  EXPECT_GT(width.choose(draftOf(32, 5)), 0) << "one long draft that was wrong";
  DraftWidth poor(32);
  poor.record({}, 0, {}, 1);
  poor.record(draftOf(2, 5), 2, pathOf(1), 4);
  EXPECT_EQ(poor.choose(draftOf(2, 5)), 0) << "two seconds are lost, of five";
  for (int pass = 0; pass < 200; ++pass) {
    poor.record(draftOf(2, 5), 0, {}, 1);
    poor.observe(draftOf(2, 5), kToken);
  }
  EXPECT_GT(poor.choose(draftOf(2, 5)), 0);
}

TEST(DraftWidth, DraftsThatAreAlwaysWrongLoseLittle) {
  // Matches of every length, all of them wrong, whatever a row takes.
  for (double perRow : {0.05, 0.3, 1.0}) {
    DraftWidth width(32);
    double seconds = 0;
    constexpr int passes = 128;
    for (int pass = 0; pass < passes; ++pass) {
      Draft draft = draftOf(32, int64_t(1) << pass % 7);
      int64_t drafted = width.choose(draft);
      double time = 1 + perRow * static_cast<double>(drafted);
      width.record(draft, drafted, {}, time);
      if (drafted == 0)
        width.observe(draft, kOther);
      seconds += time;
    }
    EXPECT_GT(seconds, passes) << "some are tried";
    EXPECT_LE(seconds, 1.03 * passes) << perRow << " a row";
  }
}

/// A token that follows the text with a share, and for each share one that follows it.
Draft fanOf(double first, const std::vector<double> &others) {
  Draft draft = {{}, /*matched=*/5};
  int64_t child = draft.add(0, kToken);
  draft.shares.push_back(first);
  for (double share : others) {
    draft.add(child, kOther);
    draft.shares.push_back(share);
  }
  return draft;
}

TEST(DraftWidth, TakesBranchesByTheirShares) {
  // Half of what follows is accepted, times 5/12 and 1/12: one token in pass after pass, rows that cost a tenth.
  DraftWidth width(32);
  Draft draft = fanOf(0.9, {0.5, 0.4, 0.05});
  auto pass = [&](int64_t verified, std::vector<int64_t> path) {
    width.record(draft, verified, path, 1 + 0.1 * static_cast<double>(verified));
  };
  for (int i = 0; i < 50; ++i)
    for (int64_t verified = 0; verified <= 4; ++verified)
      pass(verified, verified > 1   ? std::vector<int64_t>{1, 2}
                     : verified > 0 ? std::vector<int64_t>{1}
                                    : std::vector<int64_t>{});
  EXPECT_EQ(width.choose(draft), 3) << "the last one costs more than it is likely to give";
}

TEST(DraftWidth, CountsTheSharesOfWhatWasVerified) {
  // Nine tenths of what was seen is verified at the first node and accepted: acceptance is one, as for a chain that is right.
  DraftWidth trees(32), chain(32);
  for (int i = 0; i < 300; ++i) {
    trees.record(fanOf(0.5, {}), 1, i % 2 ? pathOf(1) : pathOf(0), 1);
    chain.record(draftOf(1, 5), 1, pathOf(1), 1);
  }
  EXPECT_EQ(trees.choose(draftOf(20, 5)), chain.choose(draftOf(20, 5)));
}

} // namespace
} // namespace hone::test
