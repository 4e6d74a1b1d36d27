// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many tokens are drafted by a model, by times and acceptance that are made up.

#include "speculate/draft_length.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace hone::test {
namespace {

using speculate::DraftLength;

struct Passes {
  int64_t drafted = 0, written = 0, last = 0; // tokens; of the last pass
};

/// Passes of 1 second whatever their rows are, in which the first `right` drafted tokens are accepted; drafting one takes `secondsPerToken`.
Passes runPasses(DraftLength &length, int64_t right, double secondsPerToken, int passes) {
  Passes result;
  for (int pass = 0; pass < passes; ++pass) {
    result.last = length.choose(1000, {.perToken = secondsPerToken});
    int64_t accepted = std::min(result.last, right);
    length.record(result.last, accepted, 1);
    result.drafted += result.last;
    result.written += accepted + 1;
  }
  return result;
}

TEST(DraftLength, TheFirstPassHasNoDraft) {
  DraftLength length(8);
  EXPECT_EQ(length.choose(8, {}), 0);
  length.record(0, 0, 1);
  EXPECT_GT(length.choose(8, {}), 0);
}

TEST(DraftLength, LongerDraftsAreTriedOneAfterTheOther) {
  DraftLength length(32);
  length.record(0, 0, 1);
  for (int64_t expected : {2, 4, 8, 16, 32, 32}) {
    EXPECT_EQ(length.choose(100, {}), expected);
    length.record(expected, expected, 1);
  }
}

TEST(DraftLength, TrialsTakeASmallShareOfTheTime) {
  // Passes of a second, after which the drafter lacks as many tokens.
  auto trials = [](double catchUpPerPass) {
    DraftLength length(8);
    int64_t passed = 0, count = 0;
    for (int pass = 0; pass < 2000; ++pass) {
      double missing = static_cast<double>(passed) * catchUpPerPass;
      int64_t drafted = length.choose(8, {.perToken = 0.1, .catchUp = missing});
      length.record(drafted, 0, 1);
      passed = drafted > 0 ? 0 : passed + 1;
      count += drafted;
    }
    return count;
  };
  EXPECT_LE(trials(0.1), 6) << "reading the text takes a tenth of writing it: no trial after the first drafts";
  EXPECT_GT(trials(0.002), 12);
}

TEST(DraftLength, TakesAllWhereDraftsCostNothing) {
  DraftLength length(8);
  EXPECT_EQ(runPasses(length, 8, 0, 100).last, 8);
}

TEST(DraftLength, SecondsOfTheDrafterCount) {
  DraftLength cheap(32), dear(32);
  int64_t ofCheap = runPasses(cheap, 4, 0.02, 300).last, ofDear = runPasses(dear, 4, 0.4, 300).last;
  EXPECT_LT(ofDear, ofCheap);
  EXPECT_GT(ofDear, 0) << "four tokens in 2.6 seconds are more than one in a second";
  DraftLength dearest(32);
  EXPECT_LE(runPasses(dearest, 32, 1.2, 300).drafted, 30) << "a drafted token takes more than a token without drafts";
}

TEST(DraftLength, PausesGrowWhereNothingIsRight) {
  DraftLength length(8);
  runPasses(length, 0, 0.1, 50);
  EXPECT_LE(runPasses(length, 0, 0.1, 512).drafted, 512 / 64);
}

TEST(DraftLength, DraftsAgainAfterATrial) {
  DraftLength length(8);
  runPasses(length, 0, 0.1, 300);
  EXPECT_GT(runPasses(length, 8, 0.1, 3000).last, 4);
}

TEST(DraftLength, TakesNothingWhereNothingFits) {
  DraftLength length(8);
  length.record(0, 0, 1);
  EXPECT_EQ(length.choose(0, {}), 0);
  EXPECT_EQ(length.choose(1, {}), 1);
}

} // namespace
} // namespace hone::test
