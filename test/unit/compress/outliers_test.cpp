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
#include <functional>
#include <limits>
#include <numeric>
#include <omp.h>

namespace hone::compress {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const AffineFormat kNibbles{4, 32, false, false, true};

/// Marks for `slots` slots by full sorts: of every row by its scores, and of all panels by the sums of a slot.
Outliers sortAndMark(const std::vector<float> &scores, size_t columns, int64_t slots) {
  size_t rows = scores.size() / columns;
  std::vector<std::vector<size_t>> order(rows, std::vector<size_t>(columns));
  std::vector<std::pair<double, std::pair<size_t, size_t>>> sums; // and the panel and the slot of it
  for (size_t row = 0; row < rows; ++row) {
    auto scoreOf = [&](size_t column) { return scores[row * columns + column]; };
    std::iota(order[row].begin(), order[row].end(), 0);
    std::ranges::stable_sort(order[row], std::greater<>(), scoreOf);
    for (size_t slot = 0; slot < columns; ++slot) {
      if (row % 16 == 0)
        sums.push_back({0, {row / 16, slot}});
      sums[row / 16 * columns + slot].first += scoreOf(order[row][slot]);
    }
  }
  std::ranges::stable_sort(sums, std::greater<>(), [](const auto &sum) { return sum.first; });
  Outliers marks(scores.size());
  for (size_t i = 0; i < std::min(static_cast<size_t>(slots), sums.size()); ++i)
    for (size_t row = sums[i].second.first * 16; row < std::min(sums[i].second.first * 16 + 16, rows); ++row)
      marks[row * columns + order[row][sums[i].second.second]] = true;
  return marks;
}

/// Sum of the squared errors of rounding to nearest what is not marked.
double lossWithout(OwnedWeight weight, const Outliers &marks, const AffineFormat &format,
                   const std::vector<float> &importance) {
  auto sparse = detach(weight.view(), marks);
  EXPECT_TRUE(sparse.ok());
  OwnedWeight rounded = weight;
  auto codes = roundToNearest(weight.view(), format);
  EXPECT_TRUE(codes.ok());
  writeValues(*codes, format, rounded.view());
  double sum = 0;
  for (size_t i = 0; i < weight.elements.size(); ++i) {
    double error = static_cast<double>(weight.elements[i]) - rounded.elements[i];
    sum += error * error * (importance.empty() ? 1.0f : importance[i % weight.columns]);
  }
  return sum;
}

TEST(MarkHighest, FillsTheSlotsThatGainMost) {
  std::vector<float> scores = makeRandom(2000, 4);
  for (size_t i = 0; i < scores.size(); ++i)
    scores[i] = i % 3 ? std::abs(scores[i]) : std::round(std::abs(scores[i]) * 4); // with ties
  for (int64_t slots : {0, 1, 2, 10, 49, 120, 149, 150, 151}) // of 3 panels, the last of which has 8 rows
    EXPECT_EQ(markHighest(scores, 50, slots), sortAndMark(scores, 50, slots)) << slots;
  EXPECT_THAT(markHighest(std::vector<float>{1, 1, 1, 1}, 4, 2), ElementsAre(true, true, false, false));
  EXPECT_THAT(markHighest(std::vector<float>{1, std::nanf(""), 2}, 3, 1), ElementsAre(false, true, false));
  EXPECT_TRUE(markHighest({}, 0, 3).empty());
}

TEST(MarkLargest, GoesByMagnitude) {
  OwnedWeight weight(2, 3);
  weight.elements = {1, -5, 2, 3, -2, 4};
  EXPECT_THAT(markLargest(weight.view(), 1), ElementsAre(false, true, false, false, false, true));
}

TEST(MarkSensitive, WeighsMagnitudesByInputs) {
  OwnedWeight weight(5, 40);
  OwnedHessian hessian = OwnedHessian::diagonal(40);
  std::vector<float> scores;
  for (int64_t i = 0; i < 200; ++i)
    scores.push_back(weight.elements[i] * weight.elements[i] * static_cast<float>(hessian.at(i % 40, i % 40)));
  EXPECT_EQ(markSensitive(weight.view(), hessian.view(), 4), sortAndMark(scores, 40, 4));
  OwnedHessian same = OwnedHessian::identity(40, 0.5f);
  EXPECT_EQ(markSensitive(weight.view(), same.view(), 4), markLargest(weight.view(), 4));
}

/// One element leaves: no other one would have left less.
TEST(MarkCostly, TakesTheBestElement) {
  AffineFormat format{3, 16, false, false, false};
  for (unsigned seed : {7, 8, 9}) {
    OwnedWeight weight(1, 48, seed);
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
  for (int64_t slots : {1, 2, 10, 60}) {
    Outliers costly = markCostly(weight.view(), kNibbles, {}, slots);
    EXPECT_LT(lossWithout(weight, costly, kNibbles, {}),
              lossWithout(weight, markLargest(weight.view(), slots), kNibbles, {}))
        << slots;
  }
}

/// The panel whose rows are larger loses more, and gets the slot.
TEST(MarkCostly, GivesSlotsToThePanelsThatGain) {
  OwnedWeight weight(48, 64);
  for (int64_t i = 16 * 64; i < 32 * 64; ++i)
    weight.elements[i] *= 3;
  Outliers marks = markCostly(weight.view(), kNibbles, {}, 2);
  EXPECT_EQ(std::count(marks.begin() + 16 * 64, marks.begin() + 32 * 64, true), 2 * 16);
  EXPECT_EQ(std::ranges::count(marks, true), 2 * 16);
}

TEST(MarkCostly, MarksAsManyAsItIsAskedFor) {
  OwnedWeight weight(20, 40);
  EXPECT_EQ(markCostly(weight.view(), kNibbles, {}, 80), Outliers(800, true));
  EXPECT_EQ(markCostly(weight.view(), kNibbles, {}, 0), Outliers(800));
  for (int64_t slots : {1, 7, 40, 79}) {
    Outliers marks = markCostly(weight.view(), kNibbles, {}, slots);
    for (int64_t row = 0, taken = 0; row < 20; ++row) { // as many of each row of a panel
      auto count = std::count(marks.begin() + row * 40, marks.begin() + (row + 1) * 40, true);
      taken = row % 16 == 0 ? count : taken;
      EXPECT_EQ(count, taken) << slots << " slots, row " << row;
    }
    auto first = std::count(marks.begin(), marks.begin() + 40, true);
    EXPECT_EQ(first + std::count(marks.begin() + 16 * 40, marks.begin() + 17 * 40, true), slots);
  }
  std::ranges::fill(weight.elements, 0.0f); // nothing to gain
  EXPECT_EQ(std::ranges::count(markCostly(weight.view(), kNibbles, {}, 1), true), 16);
  OwnedWeight empty(3, 0);
  EXPECT_TRUE(markCostly(empty.view(), kNibbles, {}, 4).empty());
}

TEST(MarkCostly, IsTheSameForEveryNumberOfThreads) {
  OwnedWeight weight(50, 200);
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  Outliers alone = markCostly(weight.view(), kNibbles, {}, 9);
  omp_set_num_threads(3);
  Outliers together = markCostly(weight.view(), kNibbles, {}, 9);
  omp_set_num_threads(threads);
  EXPECT_EQ(alone, together);
}

TEST(Detach, ComesBack) {
  OwnedWeight weight(19, 33), copy = weight;
  Outliers marks = markLargest(weight.view(), 8);
  auto sparse = detach(copy.view(), marks);
  ASSERT_TRUE(sparse.ok());
  EXPECT_EQ(sparse->slots(), 8);
  EXPECT_EQ(sparse->starts.size(), 3u);
  ASSERT_EQ(sparse->columns.size(), 8u * 16);
  for (int64_t slot = sparse->starts[1]; slot < 8; ++slot)
    for (int64_t row = 3; row < 16; ++row) // the second panel has 3 rows
      EXPECT_EQ(sparse->values[slot * 16 + row], 0);
  for (size_t i = 0; i < marks.size(); ++i)
    EXPECT_EQ(copy.elements[i], marks[i] ? 0 : weight.elements[i]);
  attach(*sparse, copy.view());
  for (size_t i = 0; i < marks.size(); ++i)
    EXPECT_EQ(copy.elements[i],
              marks[i] ? static_cast<float>(static_cast<_Float16>(weight.elements[i])) : weight.elements[i]);
}

/// What f16 holds comes back bit for bit.
TEST(Detach, LosesNothingOfHalves) {
  OwnedWeight weight(32, 40);
  for (float &element : weight.elements)
    element = static_cast<float>(static_cast<_Float16>(element));
  OwnedWeight copy = weight;
  auto sparse = detach(copy.view(), markCostly(weight.view(), kNibbles, {}, 11));
  ASSERT_TRUE(sparse.ok());
  attach(*sparse, copy.view());
  EXPECT_EQ(copy.elements, weight.elements);
}

TEST(Detach, RefusesRowsOfDifferentNumbers) {
  OwnedWeight weight(3, 4);
  Outliers marks(12);
  marks[1] = marks[5] = marks[6] = true;
  absl::Status status = detach(weight.view(), marks).status();
  EXPECT_EQ(std::string(status.message()), "expected row 1 to have 1 outliers, but got 2");
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
  OwnedWeight weight{20, 128, 5}; // two panels
  OwnedHessian hessian = OwnedHessian::random(128);
  InverseFactor factor = *InverseFactor::create(hessian.view(), orderByDiagonal(hessian.view()));

  double errorOf(int64_t slots) {
    OwnedWeight copy = weight;
    Outliers marks = slots ? markLargest(weight.view(), slots) : Outliers();
    auto rounded = roundWithCompensation(copy.view(), kNibbles, factor, true, false, marks);
    EXPECT_TRUE(rounded.ok());
    for (size_t i = 0; i < marks.size(); ++i)
      if (AffineScale scale = rounded->scales[i / 128 * rounded->groups + i % 128 / 32]; marks[i])
        EXPECT_EQ(rounded->codes[i], scale.zero);
    return relativeOutputError(weight.view(), copy.view(), hessian.view());
  }
};

TEST_F(WithOutliers, CompensationLosesLessTheMoreThereAre) {
  double none = errorOf(0), few = errorOf(4), many = errorOf(20), all = errorOf(2 * 128);
  EXPECT_LT(few, none);
  EXPECT_LT(many, few);
  EXPECT_LT(all, 1e-3); // f16 has 11 bits
}

TEST_F(WithOutliers, RefinementChoosesThemToo) {
  OwnedWeight swept = weight;
  Outliers marks = markCostly(weight.view(), kNibbles, {}, 6);
  auto rounded = roundWithCompensation(swept.view(), kNibbles, factor, true, true, marks);
  ASSERT_TRUE(rounded.ok());
  auto sparse = detach(swept.view(), marks);
  ASSERT_TRUE(sparse.ok());
  SparseWeight kept = *sparse;
  auto errorWith = [&](const AffineWeight &codes, const SparseWeight &outliers) {
    OwnedWeight after = weight;
    writeValues(codes, kNibbles, after.view());
    for (size_t i = 0; i < marks.size(); ++i)
      if (marks[i])
        EXPECT_EQ(after.elements[i], 0);
    attach(outliers, after.view());
    return relativeOutputError(weight.view(), after.view(), hessian.view());
  };
  double before = errorWith(*rounded, *sparse);
  ASSERT_TRUE(refine(weight.view(), kNibbles, hessian.view(), 2, *rounded, &*sparse).ok());
  double after = errorWith(*rounded, *sparse);
  EXPECT_LT(after, before);
  EXPECT_EQ(sparse->columns, kept.columns);
  EXPECT_NE(sparse->values, kept.values);
  EXPECT_LT(after, errorWith(*rounded, kept)); // those before serve the codes less
  for (float value : sparse->values)
    EXPECT_EQ(value, static_cast<float>(static_cast<_Float16>(value)));
}

/// Where H is a multiple of the identity nothing is corrected, and both ways are rounding to nearest.
TEST_F(WithOutliers, CompensationIsNearestForAMultipleOfTheIdentity) {
  auto identity = InverseFactor::create(OwnedHessian::identity(128, 0.3f).view());
  ASSERT_TRUE(identity.ok());
  for (bool isStatic : {false, true}) {
    OwnedWeight swept = weight, nearest = weight;
    Outliers marks = markCostly(weight.view(), kNibbles, {}, 3);
    auto rounded = roundWithCompensation(swept.view(), kNibbles, *identity, isStatic, false, marks);
    auto sparse = detach(nearest.view(), marks);
    auto expected = roundToNearest(nearest.view(), kNibbles);
    ASSERT_TRUE(rounded.ok() && sparse.ok() && expected.ok());
    EXPECT_EQ(rounded->codes, expected->codes);
    writeValues(*expected, kNibbles, nearest.view());
    attach(*sparse, nearest.view());
    EXPECT_EQ(swept.elements, nearest.elements);
  }
}

} // namespace
} // namespace hone::compress
