// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trees that grow by made-up probabilities.

#include "speculate/tree_expansion.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <random>

namespace hone::test {
namespace {

using speculate::Draft;
using speculate::LikelyToken;
using speculate::TreeCandidate;
using speculate::TreeExpansion;
using speculate::TreeShape;
using testing::ElementsAre;
using testing::IsEmpty;

/// Random probabilities that descend and add up to less than 1; some paths are certain, so that there are ties.
std::vector<LikelyToken> expect(std::mt19937 &random, int64_t count) {
  std::vector<LikelyToken> likely;
  double left = 1;
  for (int64_t i = 0; i < count; ++i) {
    double share = random() % 3 == 0 ? left : left * static_cast<double>(random() % 1000) / 1000;
    likely.push_back({static_cast<int64_t>(i), share});
    left -= share;
  }
  std::ranges::sort(likely, std::greater(), &LikelyToken::probability);
  return likely;
}

TreeExpansion grow(const TreeShape &shape, uint32_t seed, const speculate::TreePruner *pruner = nullptr) {
  TreeExpansion expansion(shape, pruner);
  std::mt19937 random(seed);
  while (!expansion.frontier().empty()) {
    for (int64_t node : expansion.frontier())
      expansion.expand(node, expect(random, expansion.branches()), 1);
    expansion.advance();
  }
  return expansion;
}

std::vector<double> jointOf(const Draft &draft) {
  std::vector<double> joint = {1};
  for (int64_t node = 1; node <= draft.size(); ++node)
    joint.push_back(joint[static_cast<size_t>(draft.parentOf(node))] * draft.shares[static_cast<size_t>(node) - 1]);
  return joint;
}

TEST(TreeExpansion, TheFirstTokensAreTheBestOfAllAndHaveTheirParents) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    TreeExpansion expansion = grow({.branches = 1 + seed % 5, .depth = 1 + seed % 6}, seed);
    Draft draft = expansion.rank();
    std::vector<double> joint = jointOf(draft), all;
    for (int64_t node = 1; node <= expansion.size(); ++node)
      all.push_back(expansion.at(node).joint);
    std::ranges::sort(all, std::greater());
    ASSERT_EQ(draft.size(), expansion.size());
    for (int64_t node = 1; node <= draft.size(); ++node) {
      EXPECT_LT(draft.parentOf(node), node) << "also where a token is certain";
      EXPECT_EQ(joint[static_cast<size_t>(node)], all[static_cast<size_t>(node) - 1]);
    }
  }
}

TEST(TreeExpansion, OfADepthTheMostProbablePathsGoOn) {
  TreeExpansion expansion({.branches = 2, .depth = 3}, nullptr);
  EXPECT_THAT(expansion.frontier(), ElementsAre(0));
  EXPECT_THAT(expansion.listPaths(), IsEmpty());
  std::vector<LikelyToken> first = {{5, 0.6}, {6, 0.3}};
  expansion.expand(0, first, 0.5);
  expansion.advance();
  EXPECT_THAT(expansion.frontier(), ElementsAre(1, 2));
  std::vector<LikelyToken> ofFirst = {{7, 0.5}, {8, 0.1}}, ofSecond = {{7, 0.9}, {9, 0.02}};
  expansion.expand(1, ofFirst, 0.2);  // 0.3 and 0.06
  expansion.expand(2, ofSecond, 0.1); // 0.27 and 0.006
  expansion.advance();
  EXPECT_THAT(expansion.frontier(), ElementsAre(3, 5));
  EXPECT_THAT(expansion.listPaths(), ElementsAre(1, 2, 3, 5));
  EXPECT_EQ(expansion.size(), 6) << "what does not go on stays";
  EXPECT_EQ(expansion.at(5).depth, 2);
  EXPECT_EQ(expansion.at(5).entropy, 0.1);
  EXPECT_DOUBLE_EQ(expansion.at(5).joint, 0.27);
  Draft draft = expansion.rank();
  EXPECT_THAT(draft.tokens, ElementsAre(5, 6, 7, 7, 8, 9));
  EXPECT_THAT(draft.parents, ElementsAre(0, 0, 1, 2, 1, 2)) << "of the two with 0.3 that of lesser depth first";
}

TEST(TreeExpansion, AFixedShapeIsFollowedWhateverIsProbable) {
  TreeShape shape = {.fixed = {3, 2, 1}};
  EXPECT_EQ(shape.countFixed(63), 15);
  TreeExpansion expansion = grow(shape, 1);
  EXPECT_EQ(expansion.depth(), 3);
  std::vector<int64_t> ofDepth(4);
  for (int64_t node = 1; node <= expansion.size(); ++node)
    ++ofDepth[static_cast<size_t>(expansion.at(node).depth)];
  EXPECT_THAT(ofDepth, ElementsAre(0, 3, 6, 6));
  shape.limit(2);
  EXPECT_EQ(grow(shape, 1).size(), 9);
}

TEST(TreeExpansion, ShapesAreCountedUpToALimit) {
  EXPECT_EQ(TreeShape({.fixed = {63}}).countFixed(63), 63);
  EXPECT_EQ(TreeShape({.fixed = {64}}).countFixed(63), 64);
  EXPECT_EQ(TreeShape({.fixed = {8, 8}}).countFixed(63), 64);
  EXPECT_EQ(TreeShape({.fixed = {int64_t{1} << 62, int64_t{1} << 62}}).countFixed(63), 64);
  EXPECT_EQ(TreeShape({.fixed = std::vector<int64_t>(100, 1)}).countFixed(63), 64);
}

/// Keeps paths that are probable enough.
struct Threshold : speculate::TreePruner {
  explicit Threshold(double least) : least(least) {}
  bool keeps(const TreeCandidate &candidate) const override { return candidate.joint >= least; }
  double least;
};

TEST(TreeExpansion, APrunersTreeGetsSmallerAsItKeepsLess) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    int64_t before = grow({}, seed).size();
    for (double least : {0.0, 0.01, 0.1, 0.5, 1.1}) {
      Threshold pruner(least);
      TreeExpansion expansion = grow({}, seed, &pruner);
      if (least == 0)
        EXPECT_EQ(expansion.size(), before);
      if (least > 1) {
        EXPECT_EQ(expansion.size(), 0);
        EXPECT_EQ(expansion.depth(), 1) << "nothing is left to follow";
      }
    }
  }
}

} // namespace
} // namespace hone::test
