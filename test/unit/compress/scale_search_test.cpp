// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scales that are searched: never worse than those that are fitted, and close to the best of very many.

#include "Matrices.h"
#include "hone/Compress/ScaleSearch.h"

#include <gmock/gmock.h>

#include <limits>

namespace hone::compress {
namespace {

std::vector<AffineFormat> formats() {
  std::vector<AffineFormat> all;
  for (int64_t bits : {1, 2, 3, 4, 5, 6, 8})
    for (int flags = 0; flags < 8; ++flags)
      all.push_back({bits, 0, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0});
  return all;
}

/// Normal numbers, a few of them far out where `hasTails`.
std::vector<float> makeGroup(int64_t count, unsigned seed, bool hasTails) {
  std::vector<float> group = makeRandom(count, seed);
  if (hasTails)
    for (float &element : group)
      element *= element * element;
  return group;
}

std::vector<float> makeImportance(int64_t count, unsigned seed) {
  std::vector<float> importance = makeRandom(count, seed);
  for (float &element : importance)
    element *= element;
  return importance;
}

/// The least error over a fine grid of steps up to twice that of fitScale, and all zero points.
double findLeastError(const AffineFormat &format, std::span<const float> group, std::span<const float> importance) {
  double least = std::numeric_limits<double>::infinity();
  AffineScale fitted = *fitScale(format, group);
  for (int64_t i = -800; i <= 800; ++i)
    for (int64_t zero = format.hasZeros ? format.lowest() : format.middle();
         zero <= (format.hasZeros ? format.highest() : format.middle()); ++zero)
      least = std::min(least,
                       getRoundingError(format, {fitted.scale * static_cast<float>(i) / 400, zero}, group, importance));
  return least;
}

TEST(SearchScale, NeverLosesMoreThanFitScale) {
  for (const AffineFormat &format : formats())
    for (int64_t count : {1, 2, 7, 16, 33, 64, 300})
      for (unsigned seed = 1; seed < 9; ++seed) {
        std::vector<float> group = makeGroup(count, seed, seed % 2), importance = makeImportance(count, seed + 100);
        auto searched = searchScale(format, group, importance), fitted = fitScale(format, group);
        ASSERT_TRUE(searched && fitted);
        EXPECT_LE(getRoundingError(format, *searched, group, importance),
                  getRoundingError(format, *fitted, group, importance));
        EXPECT_TRUE(searched->zero >= format.lowest() && searched->zero <= format.highest());
        if (format.hasHalfScales) {
          EXPECT_EQ(searched->scale, static_cast<float>(static_cast<_Float16>(searched->scale)));
        }
      }
}

TEST(SearchScale, IsNearTheBestOfAll) {
  for (const AffineFormat &format : formats()) {
    if (format.bits > 4)
      continue; // where there is little to gain
    double sum = 0, least = 0;
    for (unsigned seed = 1; seed < 9; ++seed) {
      std::vector<float> group = makeGroup(48, seed, seed % 2), importance = makeImportance(48, seed + 100);
      sum += getRoundingError(format, *searchScale(format, group, importance), group, importance);
      least += findLeastError(format, group, importance);
    }
    // The grid of the test has 50 times the steps, and every zero point.
    EXPECT_LE(sum, 1.15 * least) << format.bits << " bits" << (format.hasZeros ? ", zeros" : "");
  }
}

TEST(SearchScale, GainsWhereOneElementIsLarge) {
  std::vector<float> group = makeGroup(256, 3, false), importance(256, 1.0f);
  group[9] = 7; // with it, a step is two of the others' standard deviations; without it, less than one
  for (bool hasZeros : {false, true}) {
    AffineFormat format{3, 0, hasZeros, false, true};
    EXPECT_LT(getRoundingError(format, *searchScale(format, group, importance), group, importance),
              0.7 * getRoundingError(format, *fitScale(format, group), group, importance));
  }
}

/// Without zero points there is a code more on one side; the search finds out on which it serves.
TEST(SearchScale, ChoosesTheSign) {
  AffineFormat format{2, 0, false, true, false};
  std::vector<float> group = {1.0f, -1.0f, -1.9f, 1.0f}, importance(4, 1.0f);
  EXPECT_GT(searchScale(format, group, importance)->scale, 0);
  for (float &element : group)
    element = -element;
  EXPECT_LT(searchScale(format, group, importance)->scale, 0);
}

TEST(SearchScale, KnowsNoUnitOfImportance) {
  for (const AffineFormat &format : formats()) {
    std::vector<float> group = makeGroup(64, 5, true), one(64, 1.0f), many(64, 0x1p-20f);
    auto a = searchScale(format, group, one), b = searchScale(format, group, many);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->scale, b->scale);
    EXPECT_EQ(a->zero, b->zero);
  }
}

TEST(SearchScale, FollowsImportance) {
  AffineFormat format{4, 0, false, false, true};
  std::vector<float> group = makeGroup(64, 7, false), importance(64, 0.0f);
  group[9] = 50; // which no scale has to reach
  for (size_t i = 0; i < 64; ++i)
    importance[i] = i == 9 ? 0.0f : 1.0f;
  EXPECT_LT(std::abs(searchScale(format, group, importance)->scale), 0.5f * std::abs(fitScale(format, group)->scale));
}

TEST(SearchScale, TakesWhatHasNoScale) {
  std::vector<float> importance(20, 1.0f);
  for (const AffineFormat &format : formats()) {
    std::vector<float> group(20, 0.0f);
    EXPECT_EQ(searchScale(format, group, importance)->scale, 0);
    EXPECT_EQ(searchScale(format, {}, {})->scale, 0);
    group[3] = 1e-30f; // no f16, and no finite inverse of a step of f32 either
    EXPECT_TRUE(searchScale(format, group, importance));
    group[3] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(searchScale(format, group, importance));
    group[3] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(searchScale(format, group, importance));
  }
}

} // namespace
} // namespace hone::compress
