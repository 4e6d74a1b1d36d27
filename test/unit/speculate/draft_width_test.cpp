// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many drafted tokens are verified, by times and acceptance that are made up.

#include "speculate/draft_width.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace hone::test {
namespace {

using speculate::DraftWidth;

/// Passes over drafts of `available` tokens, of which `right` would be accepted; a pass takes `perRow` seconds a row, and no less than 1.
/// Returns how many were verified at last.
int64_t runPasses(DraftWidth &width, int64_t available, int64_t right, double perRow, int passes = 200) {
  constexpr int64_t kMatched = 5;
  for (int pass = 0; pass < passes; ++pass) {
    int64_t drafted = width.choose(available, kMatched);
    width.record(drafted, kMatched, std::min(drafted, right), std::max(1.0, perRow * static_cast<double>(drafted + 1)));
    if (drafted == 0)
      width.observe(kMatched, right > 0);
  }
  return width.choose(available, kMatched);
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
  EXPECT_EQ(width.choose(0, 3), 0);
  EXPECT_EQ(width.choose(4, 0), 0);
}

} // namespace
} // namespace hone::test
