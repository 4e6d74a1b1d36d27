// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Outliers: which elements each method marks, that they come back as they were, and what they do for those that remain.

#include "Matrices.h"
#include "hone/Compress/Outliers.h"
#include "hone/Compress/Refinement.h"
#include "hone/Compress/Rounding.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <omp.h>

namespace hone::compress {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const AffineFormat kNibbles{4, 32, false, false, true};

/// Marks of the `count` highest scores, by a full sort.
Outliers sortAndMark(const std::vector<float> &scores, int64_t count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order,
                    [&](size_t a, size_t b) { return scores[a] > scores[b] || (scores[a] == scores[b] && a < b); });
  Outliers marks(scores.size());
  for (int64_t i = 0; i < std::min<int64_t>(count, static_cast<int64_t>(scores.size())); ++i)
    marks[order[i]] = true;
  return marks;
}

/// Sum of the squared errors of rounding to nearest what is not marked.
double lossWithout(OwnedWeight weight, const Outliers &marks, const AffineFormat &format,
                   const std::vector<float> &importance) {
  auto apart = detach(weight.view(), marks);
  EXPECT_TRUE(apart.ok());
  OwnedWeight rounded = weight;
  auto levels = roundToNearest(weight.view(), format);
  EXPECT_TRUE(levels.ok());
  writeValues(*levels, format, rounded.view());
  double sum = 0;
  for (size_t i = 0; i < weight.elements.size(); ++i) {
    double error = static_cast<double>(weight.elements[i]) - rounded.elements[i];
    sum += error * error * (importance.empty() ? 1.0f : importance[i % weight.columns]);
  }
  return sum;
}

TEST(MarkHighest, IsTheBeginningOfASort) {
  std::vector<float> scores = makeRandom(1000, 4);
  for (size_t i = 0; i < scores.size(); i += 3)
    scores[i] = std::round(scores[i] * 4); // with many ties
  for (int64_t count : {0, 1, 2, 10, 333, 999, 1000, 1001})
    EXPECT_EQ(markHighest(scores, count), sortAndMark(scores, count)) << count;
  EXPECT_THAT(markHighest(std::vector<float>{1, 1, 1, 1}, 2), ElementsAre(true, true, false, false));
  EXPECT_THAT(markHighest(std::vector<float>{1, std::nanf(""), 2}, 1), ElementsAre(false, true, false));
  EXPECT_TRUE(markHighest({}, 3).empty());
}

TEST(MarkLargest, GoesByMagnitude) {
  OwnedWeight weight(2, 3);
  weight.elements = {1, -5, 2, 3, -2, 4};
  EXPECT_THAT(markLargest(weight.view(), 2), ElementsAre(false, true, false, false, false, true));
}

TEST(MarkSensitive, WeighsMagnitudesByInputs) {
  OwnedWeight weight(5, 40);
  OwnedMoment moment = OwnedMoment::diagonal(40);
  std::vector<float> scores;
  for (int64_t i = 0; i < 200; ++i)
    scores.push_back(weight.elements[i] * weight.elements[i] * static_cast<float>(moment.at(i % 40, i % 40)));
  EXPECT_EQ(markSensitive(weight.view(), moment.view(), 20), sortAndMark(scores, 20));
  OwnedMoment same = OwnedMoment::identity(40, 0.5f);
  EXPECT_EQ(markSensitive(weight.view(), same.view(), 20), markLargest(weight.view(), 20));
}

/// One element leaves: no other one would have left less.
TEST(MarkCostly, TakesTheBestElement) {
  AffineFormat format{3, 16, false, false, false};
  for (unsigned seed : {7, 8, 9}) {
    OwnedWeight weight(3, 48, seed);
    std::vector<float> importance = seed == 7 ? std::vector<float>() : makeRandom(48, seed + 10);
    for (float &value : importance)
      value *= value;
    Outliers chosen = markCostly(weight.view(), format, importance, 1);
    ASSERT_EQ(std::ranges::count(chosen, true), 1);
    double loss = lossWithout(weight, chosen, format, importance);
    for (size_t i = 0; i < weight.elements.size(); ++i) {
      Outliers other(weight.elements.size());
      other[i] = true;
      EXPECT_LE(loss, lossWithout(weight, other, format, importance) * (1 + 1e-9)) << i;
    }
  }
}

TEST(MarkCostly, LosesLessThanMagnitudes) {
  OwnedWeight weight(24, 96);
  for (int64_t count : {5, 23, 115, 700}) {
    Outliers costly = markCostly(weight.view(), kNibbles, {}, count);
    EXPECT_EQ(std::ranges::count(costly, true), count);
    EXPECT_LT(lossWithout(weight, costly, kNibbles, {}),
              lossWithout(weight, markLargest(weight.view(), count), kNibbles, {}))
        << count;
  }
}

TEST(MarkCostly, MarksAsManyAsItIsAskedFor) {
  OwnedWeight weight(4, 40);
  EXPECT_EQ(markCostly(weight.view(), kNibbles, {}, 160), Outliers(160, true));
  EXPECT_EQ(markCostly(weight.view(), kNibbles, {}, 0), Outliers(160));
  std::ranges::fill(weight.elements, 0.0f); // nothing to gain
  EXPECT_EQ(std::ranges::count(markCostly(weight.view(), kNibbles, {}, 7), true), 7);
  OwnedWeight empty(3, 0);
  EXPECT_TRUE(markCostly(empty.view(), kNibbles, {}, 4).empty());
}

TEST(MarkCostly, IsTheSameForEveryNumberOfThreads) {
  OwnedWeight weight(50, 200);
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  Outliers alone = markCostly(weight.view(), kNibbles, {}, 100);
  omp_set_num_threads(3);
  Outliers together = markCostly(weight.view(), kNibbles, {}, 100);
  omp_set_num_threads(threads);
  EXPECT_EQ(alone, together);
}

TEST(Detach, ComesBack) {
  OwnedWeight weight(9, 33), copy = weight;
  Outliers marks = markLargest(weight.view(), 40);
  auto apart = detach(copy.view(), marks);
  ASSERT_TRUE(apart.ok());
  EXPECT_EQ(apart->size(), 40);
  EXPECT_EQ(apart->starts.size(), 10u);
  for (size_t i = 0; i < marks.size(); ++i)
    EXPECT_EQ(copy.elements[i], marks[i] ? 0 : weight.elements[i]);
  attach(*apart, copy.view());
  for (size_t i = 0; i < marks.size(); ++i)
    EXPECT_EQ(copy.elements[i],
              marks[i] ? static_cast<float>(static_cast<_Float16>(weight.elements[i])) : weight.elements[i]);
}

TEST(Detach, RefusesWhatF16LacksANumberFor) {
  for (float value : {1e5f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    OwnedWeight weight(5, 8);
    weight.elements[3 * 8 + 2] = value;
    absl::Status status = detach(weight.view(), markLargest(weight.view(), 1)).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("cannot keep an element of row 3 in f16: it is "));
  }
}

class WithOutliers : public testing::Test {
protected:
  OwnedWeight weight{20, 128, 5};
  OwnedMoment moment = OwnedMoment::random(128);
  InverseFactor factor = *InverseFactor::create(moment.view(), orderByDiagonal(moment.view()));

  double errorOf(int64_t count) {
    OwnedWeight copy = weight;
    Outliers marks = count ? markLargest(weight.view(), count) : Outliers();
    auto rounded = roundWithFeedback(copy.view(), kNibbles, factor, true, false, marks);
    EXPECT_TRUE(rounded.ok());
    for (size_t i = 0; i < marks.size(); ++i)
      if (AffineScale scale = rounded->scales[i / 128 * rounded->groups + i % 128 / 32]; marks[i])
        EXPECT_EQ(rounded->levels[i], scale.zero);
    return relativeOutputError(weight.view(), copy.view(), moment.view());
  }
};

TEST_F(WithOutliers, FeedbackLosesLessTheMoreThereAre) {
  double none = errorOf(0), few = errorOf(40), many = errorOf(200), all = errorOf(20 * 128);
  EXPECT_LT(few, none);
  EXPECT_LT(many, few);
  EXPECT_LT(all, 1e-3); // f16 has 11 bits
}

TEST_F(WithOutliers, RefinementLeavesThemAlone) {
  OwnedWeight swept = weight, rest = weight;
  Outliers marks = markCostly(weight.view(), kNibbles, {}, 60);
  auto rounded = roundWithFeedback(swept.view(), kNibbles, factor, true, true, marks);
  ASSERT_TRUE(rounded.ok());
  auto apart = detach(swept.view(), marks);
  ASSERT_TRUE(apart.ok());
  OwnedWeight before = swept;
  attach(*apart, before.view());
  for (size_t i = 0; i < marks.size(); ++i)
    rest.elements[i] -= marks[i] ? before.elements[i] : 0;
  ASSERT_TRUE(refine(rest.view(), kNibbles, moment.view(), 2, *rounded, marks).ok());
  OwnedWeight after = weight;
  writeValues(*rounded, kNibbles, after.view());
  for (size_t i = 0; i < marks.size(); ++i)
    if (marks[i])
      EXPECT_EQ(after.elements[i], 0);
  attach(*apart, after.view());
  EXPECT_LT(relativeOutputError(weight.view(), after.view(), moment.view()),
            relativeOutputError(weight.view(), before.view(), moment.view()));
}

/// Where H is a multiple of the identity nothing is corrected, and both ways are rounding to nearest.
TEST_F(WithOutliers, FeedbackIsNearestForAMultipleOfTheIdentity) {
  auto identity = InverseFactor::create(OwnedMoment::identity(128, 0.3f).view());
  ASSERT_TRUE(identity.ok());
  for (bool isStatic : {false, true}) {
    OwnedWeight swept = weight, nearest = weight;
    Outliers marks = markCostly(weight.view(), kNibbles, {}, 30);
    auto rounded = roundWithFeedback(swept.view(), kNibbles, *identity, isStatic, false, marks);
    auto apart = detach(nearest.view(), marks);
    auto expected = roundToNearest(nearest.view(), kNibbles);
    ASSERT_TRUE(rounded.ok() && apart.ok() && expected.ok());
    EXPECT_EQ(rounded->levels, expected->levels);
    writeValues(*expected, kNibbles, nearest.view());
    attach(*apart, nearest.view());
    EXPECT_EQ(swept.elements, nearest.elements);
  }
}

} // namespace
} // namespace hone::compress
