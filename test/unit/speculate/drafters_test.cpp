// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prompt lookup, and several drafters at once.

#include "speculate/combined_drafter.h"
#include "speculate/lookup.h"
#include "speculate/suffix_automaton.h"
#include "speculate/tree_growth.h"

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
  Draft draft(int64_t) const override { return {{tokens}, matched}; }

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

/// "parent:token" of each node.
std::vector<std::string> nodesOf(const Draft &draft) {
  std::vector<std::string> nodes;
  for (int64_t node = 1; node <= draft.size(); ++node)
    nodes.push_back(std::to_string(draft.parentOf(node)) + ":" + std::to_string(draft.tokenOf(node)));
  return nodes;
}

TEST(DraftTree, GrowsByTheProductsOfShares) {
  // A place is how far the path is; the likelier token of two has three quarters.
  auto expand = [](int64_t depth) {
    return std::vector<speculate::Continuation<int64_t>>{{2 * depth, 0.75, depth + 1},
                                                         {2 * depth + 1, 0.25, depth + 1}};
  };
  Draft draft = speculate::growTree(6, int64_t{0}, expand);
  // 0.75, 0.75^2, 0.75^3, 0.75^4, 0.25 and 0.75^5, of which the fifth is more, then 0.75^5 before 0.25 * 0.75.
  EXPECT_THAT(nodesOf(draft), ElementsAre("0:0", "1:2", "2:4", "3:6", "0:1", "4:8"));
  EXPECT_THAT(draft.shares, ElementsAre(0.75, 0.75, 0.75, 0.75, 0.25, 0.75));
  EXPECT_THAT(nodesOf(speculate::growTree(0, int64_t{0}, expand)), IsEmpty());
}

TEST(AutomatonDrafter, DraftsAllThatFollowedTheMatch) {
  speculate::AutomatonDrafter drafter;
  drafter.append(Text{1, 2, 3, 9, 1, 2, 4, 9, 1, 2, 4, 8, 1, 2});
  Draft draft = drafter.draftTree(8);
  EXPECT_EQ(draft.matched, 2);
  EXPECT_EQ(nodesOf(draft).front(), "0:4") << "which followed twice";
  EXPECT_THAT(nodesOf(draft), testing::Contains("0:3"));
  EXPECT_FALSE(draft.isChain());
  EXPECT_THAT(drafter.draft(8).tokens.front(), 3) << "a chain goes on where the match occurred first";
  drafter.beginText();
  EXPECT_THAT(drafter.draftTree(8).tokens, IsEmpty());
  drafter.append(Text{4});
  for (int64_t token : drafter.draftTree(60).tokens)
    EXPECT_GE(token, 0) << "no separator";
}

TEST(AutomatonDrafter, WhatFollowedOnceIsAChain) {
  speculate::AutomatonDrafter drafter;
  drafter.append(Text{1, 2, 3, 4, 5, 1, 2});
  EXPECT_TRUE(drafter.draftTree(4).isChain());
  EXPECT_THAT(drafter.draftTree(3).tokens, ElementsAre(3, 4, 5));
}

TEST(CombinedDrafter, TreesAreThoseOfTheLongestMatch) {
  std::vector<std::unique_ptr<speculate::Drafter>> drafters;
  drafters.push_back(std::make_unique<speculate::LookupDrafter>());
  drafters.push_back(std::make_unique<speculate::AutomatonDrafter>());
  speculate::CombinedDrafter combined(std::move(drafters));
  combined.append(Text{0, 1, 2, 3, 9, 0, 1, 2, 4, 9, 0, 1, 2});
  Draft draft = combined.draftTree(2);
  EXPECT_EQ(draft.drafter, 1u) << "it has matched a token more, or is named first";
  EXPECT_EQ(draft.size(), 2);
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
