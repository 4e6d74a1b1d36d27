// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forms under a budget, held against all choices there are.

#include "hone/Compress/Allocation.h"
#include "hone/Compress/Difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hone::compress {
namespace {

using Weights = std::vector<std::vector<Candidate>>;

/// Losses that mostly fall with the bytes, as those of widths do.
Weights makeWeights(size_t count, size_t candidates, unsigned seed, int64_t unit = 1) {
  std::mt19937 generator(seed);
  auto random = [&](int most) { return static_cast<int64_t>(generator() % most) + 1; };
  Weights weights(count);
  for (auto &weight : weights)
    for (size_t i = 0; i < candidates; ++i) {
      int64_t bytes = random(40) * unit;
      weight.push_back({bytes, 100.0 / static_cast<double>(bytes) + static_cast<double>(random(1000)) / 250.0});
    }
  return weights;
}

/// The least loss within the budget, by going through all choices; infinite where none fits.
double searchAll(const Weights &weights, int64_t budget, size_t first = 0) {
  if (budget < 0)
    return INFINITY;
  if (first == weights.size())
    return 0;
  double least = INFINITY;
  for (const Candidate &candidate : weights[first])
    least = std::min(least, candidate.loss + searchAll(weights, budget - candidate.bytes, first + 1));
  return least;
}

void expectConsistent(const Weights &weights, int64_t budget, const Allocation &found) {
  int64_t bytes = 0;
  double loss = 0;
  ASSERT_EQ(found.chosen.size(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    ASSERT_LT(found.chosen[i], weights[i].size());
    bytes += weights[i][found.chosen[i]].bytes;
    loss += weights[i][found.chosen[i]].loss;
  }
  EXPECT_EQ(bytes, found.bytes);
  EXPECT_DOUBLE_EQ(loss, found.loss);
  EXPECT_LE(bytes, budget);
}

TEST(Allocation, IsTheBestOfAllChoices) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Weights weights = makeWeights(1 + seed % 6, 1 + seed % 5, seed);
    for (int64_t budget : {20, 45, 70, 110, 160, 300}) {
      double least = searchAll(weights, budget);
      auto found = allocate(weights, budget);
      ASSERT_EQ(found.ok(), std::isfinite(least)) << seed << " in " << budget;
      if (!found.ok())
        continue;
      EXPECT_TRUE(found->isOptimal);
      EXPECT_NEAR(found->loss, least, 1e-9) << seed << " in " << budget;
      expectConsistent(weights, budget, *found);
    }
  }
}

TEST(Allocation, StaysNearTheBestWithFewStates) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Weights weights = makeWeights(7, 4, seed);
    auto best = allocate(weights, 120), found = allocate(weights, 120, /*mostStates=*/4);
    ASSERT_EQ(best.ok(), found.ok());
    if (!best.ok())
      continue;
    expectConsistent(weights, 120, *found);
    EXPECT_GE(found->loss, best->loss - 1e-9);
    double worst = 0; // with the fewest bytes of each
    for (const auto &weight : weights)
      worst += std::ranges::min(weight, {}, &Candidate::bytes).loss;
    EXPECT_LE(found->loss, worst);
  }
}

TEST(Allocation, IsOptimalForAModelOfManyLayers) {
  // Seven matrices of a few sizes in 48 layers, ten widths each.
  Weights weights;
  std::mt19937 generator(3);
  for (int i = 0; i < 336; ++i) {
    int64_t elements = i % 7 < 4 ? 896 * 896 : 896 * 4864;
    double scale = 0.5 + static_cast<double>(generator() % 1000) / 1000.0;
    auto &weight = weights.emplace_back();
    for (int64_t bits : {2, 3, 4, 5, 6, 8})
      for (int64_t group : {32, 64, 128})
        weight.push_back(
            {elements * bits / 8 + elements / group * 2, scale * std::pow(4.0, -bits) * (1 + 0.1 * std::log2(group))});
  }
  int64_t elements = 48 * (4 * 896 * 896 + 3 * 896 * 4864), budget = elements * 13 / 32; // 3.25 bits
  auto found = allocate(weights, budget), again = allocate(weights, budget);
  ASSERT_TRUE(found.ok());
  expectConsistent(weights, budget, *found);
  EXPECT_GT(found->bytes, budget * 999 / 1000);
  EXPECT_EQ(found->chosen, again->chosen);
}

TEST(Allocation, SaysHowMuchRoomItNeeds) {
  Weights weights = {{{10, 1}, {4, 3}}, {{6, 1}}};
  EXPECT_EQ(allocate(weights, 9).status().message(), "expected room for at least 10 bytes of weights, but got 9");
  EXPECT_EQ(allocate(weights, 10)->chosen, (std::vector<size_t>{1, 0}));
  EXPECT_EQ(allocate(weights, 16)->chosen, (std::vector<size_t>{0, 0}));
  weights.emplace_back();
  EXPECT_FALSE(allocate(weights, 100).ok());
  EXPECT_TRUE(allocate({}, 0)->chosen.empty());
}

TEST(Difference, IsRelativeToWhatWasThere) {
  std::vector<float> before(200'000, 2.0f), after = before;
  EXPECT_EQ(relativeDifference(before, after), 0);
  for (size_t i = 0; i < after.size(); i += 4)
    after[i] = 0;
  EXPECT_DOUBLE_EQ(relativeDifference(before, after), 0.5);
  std::vector<float> nothing(8);
  EXPECT_EQ(relativeDifference(nothing, nothing), 0);
}

} // namespace
} // namespace hone::compress
