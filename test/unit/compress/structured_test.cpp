// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which groups go, and that what stays is the least squares fit.

#include "Matrices.h"
#include "hone/Compress/Structured.h"

#include <limits>
#include <omp.h>

namespace hone::compress {
namespace {

/// Groups of `width` neighbouring inputs; the last `kept` inputs are of none.
std::vector<int32_t> makeGroups(int64_t columns, int64_t width, int64_t kept = 0) {
  std::vector<int32_t> groupOf(columns);
  for (int64_t k = 0; k < columns; ++k)
    groupOf[k] = k < columns - kept ? static_cast<int32_t>(k / width) : -1;
  return groupOf;
}

/// W H[:, S] H[S, S]⁻¹ for the columns S that `isGone` leaves, 0 in the others.
OwnedWeight fit(const OwnedWeight &weight, const std::vector<double> &hessian, const std::vector<bool> &isGone) {
  std::vector<int64_t> kept;
  for (int64_t k = 0; k < weight.columns; ++k)
    if (!isGone[k])
      kept.push_back(k);
  std::vector<double> a, b(kept.size());
  for (int64_t i : kept)
    for (int64_t j : kept)
      a.push_back(hessian[i * weight.columns + j]);
  OwnedWeight fitted = weight;
  fitted.elements.assign(fitted.elements.size(), 0.0f);
  for (int64_t row = 0; row < weight.rows; ++row) {
    for (size_t i = 0; i < kept.size(); ++i) {
      b[i] = 0;
      for (int64_t j = 0; j < weight.columns; ++j)
        b[i] += hessian[kept[i] * weight.columns + j] * weight.at(row, j);
    }
    std::vector<double> solution = solve(a, b);
    for (size_t i = 0; i < kept.size(); ++i)
      fitted.elements[row * weight.columns + kept[i]] = static_cast<float>(solution[i]);
  }
  return fitted;
}

std::vector<bool> markGone(const std::vector<int32_t> &groupOf, const std::vector<int64_t> &groups) {
  std::vector<bool> isGone;
  for (int32_t group : groupOf)
    isGone.push_back(std::ranges::find(groups, group) != groups.end());
  return isGone;
}

InverseFactor factor(const OwnedHessian &hessian) {
  auto created = InverseFactor::create(hessian.view());
  EXPECT_TRUE(created.ok()) << created.status();
  return std::move(*created);
}

TEST(ChooseLowest, TakesTheLastOfEqualOnes) {
  EXPECT_EQ(chooseLowest(std::vector<double>{3, 1, 2, 1}, 2), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(chooseLowest(std::vector<double>{1, 1, 1}, 2), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(chooseLowest(std::vector<double>{1, 2}, 0), (std::vector<int64_t>{}));
}

TEST(Scores, SumOverTheInputsOfAGroup) {
  OwnedWeight weight(2, 4);
  weight.elements = {1, 2, 3, 4, 5, 6, 7, 8};
  OwnedHessian hessian = OwnedHessian::identity(4, 2.0f);
  std::vector<int32_t> groupOf{1, 0, -1, 1};
  EXPECT_EQ(scoreColumns(weight.view(), {groupOf, 2}), (std::vector<double>{4 + 36, 1 + 16 + 25 + 64}));
  EXPECT_EQ(scoreByEnergy(weight.view(), hessian.view(), {groupOf, 2}), (std::vector<double>{80, 212}));
  std::vector<int32_t> ofRows{-1, 0};
  EXPECT_EQ(scoreRows(weight.view(), {ofRows, 1}), (std::vector<double>{25 + 36 + 49 + 64}));
}

TEST(SelectInputs, TakesRowsAndColumns) {
  OwnedHessian hessian(3);
  hessian.elements = {1, 2, 3, 2, 5, 6, 3, 6, 9};
  EXPECT_EQ(selectInputs(hessian.view(), std::vector<int64_t>{0, 2}), (std::vector<float>{1, 3, 3, 9}));
}

TEST(Eliminate, WhatStaysIsTheLeastSquaresFit) {
  for (auto [columns, width, count, rounds] :
       {std::tuple(24, 1, 7, 7), {24, 1, 7, 2}, {40, 8, 2, 1}, {96, 3, 20, 4}, {12, 4, 0, 1}, {12, 4, 2, 2}}) {
    OwnedHessian hessian = OwnedHessian::random(columns);
    OwnedWeight weight(9, columns), before = weight;
    std::vector<int32_t> groupOf = makeGroups(columns, width);
    auto gone = eliminateGroups(weight.view(), factor(hessian), {groupOf, columns / width}, count, rounds);
    ASSERT_TRUE(gone.ok()) << gone.status();
    ASSERT_EQ(static_cast<int64_t>(gone->groups.size()), count);
    std::vector<double> damped = hessian.damped(kDamping);
    OwnedWeight expected = fit(before, damped, markGone(groupOf, gone->groups));
    // Elements of about 1, in f64 but for where they are stored.
    for (size_t i = 0; i < weight.elements.size(); ++i)
      ASSERT_NEAR(weight.elements[i], expected.elements[i], 2e-6) << columns << ", " << i;
    double error = errorIn(damped, before, weight);
    EXPECT_NEAR(gone->loss, error, 1e-5 * error);
  }
}

TEST(Eliminate, OneGroupIsTheOneOfLeastLoss) {
  constexpr int64_t columns = 30, width = 5;
  OwnedHessian hessian = OwnedHessian::random(columns);
  std::vector<int32_t> groupOf = makeGroups(columns, width);
  std::vector<double> damped = hessian.damped(kDamping);
  OwnedWeight weight(7, columns);
  double least = std::numeric_limits<double>::infinity();
  int64_t best = -1;
  for (int64_t group = 0; group < columns / width; ++group) {
    double error = errorIn(damped, weight, fit(weight, damped, markGone(groupOf, {group})));
    best = error < least ? group : best;
    least = std::min(least, error);
  }
  OwnedWeight pruned = weight;
  auto gone = eliminateGroups(pruned.view(), factor(hessian), {groupOf, columns / width}, 1, 1);
  ASSERT_TRUE(gone.ok()) << gone.status();
  EXPECT_EQ(gone->groups, std::vector<int64_t>{best});
  EXPECT_NEAR(gone->loss, least, 1e-5 * least);
}

TEST(Eliminate, IsTheChoiceByEnergyWhereInputsAreNotCorrelated) {
  constexpr int64_t columns = 64;
  OwnedHessian hessian = OwnedHessian::diagonal(columns);
  OwnedWeight weight(5, columns), before = weight;
  std::vector<int32_t> groupOf = makeGroups(columns, 1);
  // Damping adds the same to every input: leave it out of the comparison.
  auto undamped = InverseFactor::create(hessian.view(), {}, 0.0);
  ASSERT_TRUE(undamped.ok());
  std::vector<int64_t> expected = chooseLowest(scoreByEnergy(weight.view(), hessian.view(), {groupOf, columns}), 20);
  auto gone = eliminateGroups(weight.view(), *undamped, {groupOf, columns}, 20, 3);
  ASSERT_TRUE(gone.ok()) << gone.status();
  EXPECT_EQ(gone->groups, expected);
  std::vector<bool> isGone = markGone(groupOf, expected);
  for (int64_t row = 0; row < weight.rows; ++row)
    for (int64_t k = 0; k < columns; ++k)
      ASSERT_EQ(weight.at(row, k), isGone[k] ? 0.0f : before.at(row, k));
}

TEST(Eliminate, InputsThatRepeatOthersCostNothing) {
  constexpr int64_t columns = 16;
  OwnedHessian hessian = OwnedHessian::random(columns);
  // Input 5 is input 2 twice as large.
  for (int64_t k = 0; k < columns; ++k)
    hessian.at(5, k) = 2 * hessian.at(2, k);
  for (int64_t k = 0; k < columns; ++k)
    hessian.at(k, 5) = k == 5 ? 4 * hessian.at(2, 2) : hessian.at(5, k);
  OwnedWeight weight(4, columns), before = weight;
  std::vector<int32_t> groupOf = makeGroups(columns, 1);
  auto factored = InverseFactor::create(hessian.view(), {}, 1e-7);
  ASSERT_TRUE(factored.ok());
  auto gone = eliminateGroups(weight.view(), *factored, {groupOf, columns}, 1, 1);
  ASSERT_TRUE(gone.ok()) << gone.status();
  ASSERT_TRUE(gone->groups[0] == 2 || gone->groups[0] == 5);
  std::vector<double> exact(hessian.elements.begin(), hessian.elements.end());
  OwnedWeight zero = before;
  zero.elements.assign(zero.elements.size(), 0.0f);
  EXPECT_LT(errorIn(exact, before, weight), 1e-5 * errorIn(exact, before, zero));
}

TEST(Eliminate, TakesDeadInputsFirstAndKeepsWhatIsOfNoGroup) {
  constexpr int64_t columns = 12;
  OwnedHessian hessian = OwnedHessian::random(columns);
  for (int64_t k = 0; k < columns; ++k)
    hessian.at(4, k) = hessian.at(k, 4) = 0;
  OwnedWeight weight(3, columns);
  for (int64_t row = 0; row < 3; ++row)
    weight.elements[row * columns + 4] = 100;
  std::vector<int32_t> groupOf = makeGroups(columns, 2, 4);
  groupOf[4] = 4; // by itself
  auto gone = eliminateGroups(weight.view(), factor(hessian), {groupOf, 5}, 1, 1);
  ASSERT_TRUE(gone.ok()) << gone.status();
  EXPECT_EQ(gone->groups, std::vector<int64_t>{4});
  EXPECT_EQ(gone->loss, 0);
  auto rest = eliminateGroups(weight.view(), factor(hessian), {groupOf, 5}, 5, 5);
  ASSERT_TRUE(rest.ok()) << rest.status();
  for (int64_t k = 0; k < columns; ++k)
    EXPECT_EQ(weight.at(0, k) == 0, k < 8);
}

TEST(Eliminate, GivesTheSameBitsForEveryNumberOfThreads) {
  constexpr int64_t columns = 150;
  OwnedHessian hessian = OwnedHessian::random(columns);
  std::vector<int32_t> groupOf = makeGroups(columns, 3);
  std::vector<float> first;
  int most = omp_get_max_threads();
  for (int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    OwnedWeight weight(70, columns);
    ASSERT_TRUE(eliminateGroups(weight.view(), factor(hessian), {groupOf, columns / 3}, 12, 4).ok());
    first = first.empty() ? weight.elements : first;
    EXPECT_EQ(weight.elements, first) << threads;
  }
  omp_set_num_threads(most);
}

} // namespace
} // namespace hone::compress
