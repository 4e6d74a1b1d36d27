// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Routing between two generators of made-up blocks: which are taken, and that each rule is what it is said to be.

#include "speculate/block_router.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gmock/gmock.h>
#include <random>

namespace hone::test {
namespace {

using speculate::BlockRouter;
using speculate::RoutingOptions;
using speculate::RoutingRule;
using testing::ElementsAre;

/// Who made it, and how good it is.
struct Piece {
  int maker;
  double quality;
  bool operator==(const Piece &) const = default;
};
using Pieces = std::vector<Piece>;

/// Makes pieces of given qualities, one for each place.
class Maker : public speculate::BlockGenerator<Piece> {
public:
  Maker(int name, std::vector<double> qualities) : name(name), qualities(std::move(qualities)) {}

  absl::StatusOr<Piece> propose() override {
    if (sequence.size() == qualities.size())
      return io::invalid("no more pieces");
    sequence.push_back({name, qualities[sequence.size()]});
    return sequence.back();
  }
  absl::Status rollBack() override {
    sequence.pop_back();
    return absl::OkStatus();
  }
  absl::Status append(const Piece &piece) override {
    sequence.push_back(piece);
    return absl::OkStatus();
  }

  Pieces sequence;

private:
  int name;
  std::vector<double> qualities;
};

/// Knows the quality of pieces; for RoutingRule::Advantage, how much better the target's is.
struct Judge : speculate::BlockScorer<Piece> {
  std::vector<double> advantages = {}; // by place, or none
  size_t asked = 0;
  absl::StatusOr<double> score(const Piece &piece) override {
    size_t place = asked++;
    return advantages.empty() ? piece.quality : advantages[place];
  }
};

constexpr int kSmall = 1, kLarge = 2;
const std::vector<double> kSmallQualities = {0.5, 0.9, 0.2, 0.7, 0.4}, kLargeQualities = {0.8, 0.6, 0.9, 0.75, 0.4};

struct Routed {
  std::vector<int> makers;
  double quality = 0;
  speculate::RoutingCounts counts;
};

Routed route(const RoutingOptions &options, const std::vector<double> &small = kSmallQualities,
             const std::vector<double> &large = kLargeQualities) {
  Maker draft(kSmall, small), target(kLarge, large);
  Judge judge;
  if (options.rule == RoutingRule::Advantage)
    for (size_t i = 0; i < small.size(); ++i)
      judge.advantages.push_back(large[i] - small[i]);
  BlockRouter<Piece> router(draft, target, judge, options);
  Routed routed;
  for (size_t i = 0; i < small.size(); ++i) {
    auto piece = router.next();
    EXPECT_TRUE(piece.ok());
    EXPECT_EQ(piece->isEscalated, piece->block.maker == kLarge);
    routed.makers.push_back(piece->block.maker);
    routed.quality += piece->block.quality;
  }
  EXPECT_EQ(draft.sequence, target.sequence) << "both have what was accepted and nothing else";
  routed.counts = router.counts();
  return routed;
}

TEST(BlockRouter, TakesWhatIsGoodEnough) {
  Routed routed = route({RoutingRule::Quality, 0.5});
  EXPECT_THAT(routed.makers, ElementsAre(kSmall, kSmall, kLarge, kSmall, kLarge));
  EXPECT_EQ(routed.counts.proposed, 5);
  EXPECT_EQ(routed.counts.escalated, 2);
  routed = route({RoutingRule::Quality, 0.5, /*forcesFirst=*/true});
  EXPECT_THAT(routed.makers, ElementsAre(kLarge, kSmall, kLarge, kSmall, kLarge));
  EXPECT_EQ(routed.counts.proposed, 4) << "the draft does not make the first";
}

TEST(BlockRouter, AnAdvantageAboveTheThresholdEscalates) {
  // Advantages are 0.3, -0.3, 0.7, 0.05 and 0.
  EXPECT_THAT(route({RoutingRule::Advantage, 0}).makers, ElementsAre(kLarge, kSmall, kLarge, kLarge, kSmall));
  EXPECT_THAT(route({RoutingRule::Advantage, 0.1}).makers, ElementsAre(kLarge, kSmall, kLarge, kSmall, kSmall));
}

TEST(BlockRouter, InfiniteThresholdsAreOneGeneratorAlone) {
  const std::vector<int> small(5, kSmall), large(5, kLarge);
  for (RoutingRule rule : {RoutingRule::Advantage, RoutingRule::Oracle}) {
    EXPECT_EQ(route({rule, -INFINITY}).makers, large);
    EXPECT_EQ(route({rule, INFINITY}).makers, small);
  }
  EXPECT_EQ(route({RoutingRule::Quality, INFINITY}).makers, large);
  EXPECT_EQ(route({RoutingRule::Quality, -INFINITY}).makers, small);
  EXPECT_THAT(route({RoutingRule::Quality, -INFINITY, true}).makers,
              ElementsAre(kLarge, kSmall, kSmall, kSmall, kSmall));
}

/// Of all ways to let the target make so many pieces, none gives a better sequence than a threshold of the advantage.
TEST(BlockRouter, AThresholdOfTheAdvantageIsTheBestOfAllPolicies) {
  std::mt19937 random(9);
  constexpr size_t count = 8;
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<double> small(count), large(count);
    for (std::vector<double> *each : {&small, &large})
      for (double &quality : *each)
        quality = static_cast<double>(random() % 1000) / 1000;
    for (double threshold : {-0.5, -0.1, 0.0, 0.1, 0.5}) {
      Routed routed = route({RoutingRule::Oracle, threshold}, small, large);
      EXPECT_EQ(routed.makers, route({RoutingRule::Advantage, threshold}, small, large).makers);
      double best = 0;
      for (unsigned policy = 0; policy < 1U << count; ++policy) {
        if (std::popcount(policy) != routed.counts.escalated)
          continue;
        double quality = 0;
        for (size_t i = 0; i < count; ++i)
          quality += (policy >> i & 1) != 0 ? large[i] : small[i];
        best = std::max(best, quality);
      }
      EXPECT_NEAR(routed.quality, best, 1e-12);
    }
  }
}

TEST(BlockRouter, WastedAreThoseOfTheTargetThatAreNoBetter) {
  EXPECT_EQ(route({RoutingRule::Oracle, -INFINITY}).counts.wasted, 2);
  EXPECT_EQ(route({RoutingRule::Oracle, 0}).counts.wasted, 0);
}

TEST(BlockRouter, FailsAsItsPartsDo) {
  Maker draft(kSmall, {NAN, 1}), target(kLarge, {1, 1});
  Judge judge;
  BlockRouter<Piece> router(draft, target, judge, {});
  EXPECT_EQ(router.next().status().message(), "cannot judge block 1: its score is not a number");
  Maker empty(kSmall, {});
  BlockRouter<Piece> without(empty, target, judge, {});
  EXPECT_EQ(without.next().status().message(), "no more pieces");
}

} // namespace
} // namespace hone::test
