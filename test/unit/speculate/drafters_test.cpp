// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prompt lookup, and several drafters at once.

#include "speculate/combined_drafter.h"
#include "speculate/lookup.h"
#include "speculate/suffix_automaton.h"

#include <gmock/gmock.h>

namespace hone::test {
namespace {

using speculate::Draft;
using testing::ElementsAre;
using testing::IsEmpty;

using Text = std::vector<int64_t>;

/// Always drafts the same.
class FixedDrafter : public speculate::Drafter {
public:
  FixedDrafter(Text tokens, int64_t matched) : tokens(std::move(tokens)), matched(matched) {}

  void beginText() override {}
  void append(std::span<const int64_t>) override {}
  Draft draft(int64_t) const override { return {.tokens = tokens, .matched = matched}; }

private:
  Text tokens;
  int64_t matched;
};

Draft combine(std::vector<FixedDrafter> drafters) {
  std::vector<std::unique_ptr<speculate::Drafter>> list;
  for (const FixedDrafter &drafter : drafters)
    list.push_back(std::make_unique<FixedDrafter>(drafter));
  return speculate::CombinedDrafter(std::move(list)).draft(8);
}

TEST(CombinedDrafter, TheLongestMatchCounts) {
  Draft draft = combine({{{1}, 3}, {{2}, 5}, {{3}, 4}});
  EXPECT_THAT(draft.tokens, ElementsAre(2));
  EXPECT_EQ(draft.matched, 5);
  EXPECT_EQ(draft.drafter, 1u);
  EXPECT_THAT(combine({{{1}, 3}, {{2}, 3}}).tokens, ElementsAre(1)) << "of equal ones the first";
  EXPECT_EQ(combine({{{}, 9}, {{2}, 3}}).drafter, 1u) << "a match that nothing follows is none";
  EXPECT_THAT(combine({{{}, 9}, {{}, 3}}).tokens, IsEmpty());
}

TEST(CombinedDrafter, AllFollowTheText) {
  std::vector<std::unique_ptr<speculate::Drafter>> drafters;
  drafters.push_back(std::make_unique<speculate::AutomatonDrafter>());
  drafters.push_back(std::make_unique<speculate::LookupDrafter>());
  speculate::CombinedDrafter combined(std::move(drafters));
  combined.append(Text{1, 2, 3, 4, 1, 2, 3});
  EXPECT_EQ(combined.draft(8).drafter, 0u);
  combined.append(Text{4, 9, 2, 3, 4});
  EXPECT_EQ(combined.draft(8).matched, 3);
  combined.beginText();
  EXPECT_THAT(combined.draft(8).tokens, IsEmpty());
}

Draft lookUp(const Text &text) {
  speculate::LookupDrafter drafter;
  drafter.append(text);
  return drafter.draft(3);
}

TEST(LookupDrafter, DraftsWhatFollowedTheLastThreeTokens) {
  Draft draft = lookUp({1, 2, 3, 4, 5, 6, 7, 2, 3, 4});
  EXPECT_THAT(draft.tokens, ElementsAre(5, 6, 7));
  EXPECT_EQ(draft.matched, 3);
  EXPECT_THAT(lookUp({1, 2, 3, 8, 1, 2, 3, 9, 1, 2, 3}).tokens, ElementsAre(8, 1, 2)) << "where they came first";
  EXPECT_THAT(lookUp({1, 1, 1, 1}).tokens, ElementsAre(1));
  EXPECT_THAT(lookUp({1, 2, 3, 9, 2, 3}).tokens, IsEmpty()) << "two are not enough";
  EXPECT_THAT(lookUp({}).tokens, IsEmpty());
}

} // namespace
} // namespace hone::test
