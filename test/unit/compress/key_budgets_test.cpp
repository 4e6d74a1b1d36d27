// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Budgets of keys a layer, held against a scan of all shares and against the same budget for all layers.

#include "hone/Compress/KeyBudgets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace hone::compress {
namespace {

using Mass = std::vector<std::vector<double>>;

/// Layers whose mass falls with different powers of the rank, some of it equal.
Mass makeMass(size_t layers, size_t keys, unsigned seed) {
  std::mt19937 generator(seed);
  Mass mass(layers);
  for (auto &layer : mass) {
    double power = static_cast<double>(generator() % 300) / 100;
    for (size_t key = 0; key < keys; ++key)
      layer.push_back(std::pow(static_cast<double>(key / (1 + seed % 3) + 1), -power));
  }
  return mass;
}

int64_t sumOf(const std::vector<int64_t> &counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

TEST(KeyBudgets, MeetTheBudgetAndKeepMoreOfTheWorstLayer) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    size_t layers = 1 + seed % 9, keys = 8 + seed % 120;
    Mass mass = makeMass(layers, keys, seed);
    int64_t least = 1 + seed % 4, budget = least + seed % (static_cast<int64_t>(keys) - least + 1);
    auto found = searchKeyBudgets(mass, budget, least);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(sumOf(found->budgets), budget * static_cast<int64_t>(layers));
    for (int64_t own : found->budgets) {
      EXPECT_GE(own, least);
      EXPECT_LE(own, static_cast<int64_t>(keys));
    }
    KeyBudgets uniform = shareOf(mass, std::vector(layers, budget));
    EXPECT_GE(found->share, uniform.share - 1e-12) << seed;
  }
}

/// No other budgets of that sum leave the worst layer a greater share.
TEST(KeyBudgets, AreTheBestOfAllForTheWorstLayer) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    constexpr int64_t kKeys = 9;
    Mass mass = makeMass(3, kKeys, seed);
    int64_t budget = 1 + seed % kKeys;
    auto found = searchKeyBudgets(mass, budget, 1);
    ASSERT_TRUE(found.ok()) << found.status();
    double best = 0;
    for (int64_t a = 1; a <= kKeys; ++a)
      for (int64_t b = 1; b <= kKeys; ++b)
        if (int64_t c = 3 * budget - a - b; c >= 1 && c <= kKeys)
          best = std::max(best, shareOf(mass, {a, b, c}).share);
    EXPECT_NEAR(found->share, best, 1e-12) << seed;
  }
}

TEST(KeyBudgets, OfEqualLayersAreEqual) {
  Mass mass(4, makeMass(1, 40, 3).front());
  for (int64_t budget : {1, 7, 20, 40})
    EXPECT_EQ(searchKeyBudgets(mass, budget, 1)->budgets, std::vector<int64_t>(4, budget));
}

TEST(KeyBudgets, GiveLeastToALayerOfOneKey) {
  Mass mass = makeMass(3, 50, 1);
  mass[1].assign(50, 0);
  mass[1][0] = 1;
  auto found = searchKeyBudgets(mass, 20, 2);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->budgets[1], 2);
  EXPECT_EQ(sumOf(found->budgets), 60);
}

/// Where all keys have the same mass, shares are steps that all layers take at once.
TEST(KeyBudgets, EndWhereSharesAreSteps) {
  Mass mass(3, std::vector<double>(6, 1.0));
  mass[0].assign(6, 0);
  mass[0][0] = 1;
  auto found = searchKeyBudgets(mass, 4, 1);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(sumOf(found->budgets), 12);
}

TEST(KeyBudgets, RefuseWhatCannotBe) {
  Mass mass = makeMass(2, 10, 0);
  EXPECT_FALSE(searchKeyBudgets({}, 1, 1).ok());
  EXPECT_FALSE(searchKeyBudgets(mass, 11, 1).ok());
  EXPECT_FALSE(searchKeyBudgets(mass, 3, 4).ok());
  for (double wrong : {-1.0, std::nan(""), HUGE_VAL}) {
    Mass bad = mass;
    bad[1][9] = wrong;
    EXPECT_FALSE(searchKeyBudgets(bad, 5, 1).ok()) << wrong;
  }
  Mass shorter = mass, ascending = mass, none = mass;
  shorter[1].pop_back();
  ascending[0] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  none[1].assign(10, 0);
  for (const Mass &bad : {shorter, ascending, none})
    EXPECT_FALSE(searchKeyBudgets(bad, 5, 1).ok());
}

} // namespace
} // namespace hone::compress
