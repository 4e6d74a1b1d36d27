// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drafts of a known text, and how often they are right.

#include "speculate/replay.h"

#include <gmock/gmock.h>
#include <numeric>

namespace hone::test {
namespace {

using speculate::acceptanceFor;
using speculate::Draft;
using speculate::Replay;
using speculate::ReplayDrafter;
using testing::ElementsAre;
using testing::IsEmpty;

using Text = std::vector<int64_t>;

/// 0, 1, 2, ….
Text countTo(int64_t end) {
  Text text(static_cast<size_t>(end));
  std::iota(text.begin(), text.end(), 0);
  return text;
}

TEST(ReplayDrafter, AnOracleDraftsTheText) {
  ReplayDrafter drafter({.text = {5, 6, 7, 8, 9}, .acceptance = 1});
  drafter.append(Text{5, 6});
  EXPECT_THAT(drafter.draft(2).tokens, ElementsAre(7, 8));
  EXPECT_GT(drafter.draft(2).matched, 0);
  EXPECT_THAT(drafter.draft(9).tokens, ElementsAre(7, 8, 9)) << "no more is known";
  EXPECT_THAT(drafter.draft(0).tokens, IsEmpty());
  drafter.append(Text{7, 8, 9, 1});
  EXPECT_THAT(drafter.draft(2).tokens, IsEmpty());
  drafter.beginText();
  EXPECT_THAT(drafter.draft(1).tokens, ElementsAre(5));
}

TEST(ReplayDrafter, AtZeroAllIsWrong) {
  ReplayDrafter drafter({.text = countTo(1000), .acceptance = 0});
  Draft draft = drafter.draft(1000);
  for (size_t i = 0; i < draft.tokens.size(); ++i)
    EXPECT_NE(draft.tokens[i], static_cast<int64_t>(i));
}

TEST(ReplayDrafter, IsRightAsOftenAsAsked) {
  auto draftAll = [](uint64_t seed) {
    return ReplayDrafter({.text = countTo(10000), .acceptance = 0.7, .seed = seed}).draft(10000).tokens;
  };
  Text draft = draftAll(3);
  int64_t right = 0;
  for (size_t i = 0; i < draft.size(); ++i)
    right += draft[i] == static_cast<int64_t>(i);
  EXPECT_NEAR(static_cast<double>(right), 7000, 200) << "more than four standard deviations";
  EXPECT_EQ(draftAll(3), draft);
  EXPECT_NE(draftAll(4), draft);
}

TEST(ReplayDrafter, APositionHasTheSameDraftWhereverDraftsBegin) {
  ReplayDrafter drafter({.text = countTo(100), .acceptance = 0.5});
  Text all = drafter.draft(100).tokens;
  drafter.append(countTo(40));
  EXPECT_EQ(drafter.draft(100).tokens, Text(all.begin() + 40, all.end()));
}

TEST(ReplayDrafter, AcceptanceFollowsFromTheLength) {
  EXPECT_EQ(acceptanceFor(1, 8), 0);
  EXPECT_EQ(acceptanceFor(9, 8), 1);
  EXPECT_NEAR(acceptanceFor(1.75, 2), 0.5, 1e-12) << "1 + 1/2 + 1/4";
  EXPECT_NEAR(acceptanceFor(1.3, 1), 0.3, 1e-12);
}

} // namespace
} // namespace hone::test
