// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// N:M masks: how many survive, which, and what the sweep makes of the rest.

#include "Matrices.h"
#include "hone/Compress/Pruning.h"

#include <array>
#include <limits>
#include <omp.h>

namespace hone::compress {
namespace {

constexpr NmPattern kPatterns[] = {{2, 4}, {1, 4}, {4, 8}, {3, 5}, {0, 4}, {4, 4}, {1, 1}, {7, 128}};

std::vector<bool> mark(std::vector<double> scores, int64_t count) {
  std::array<bool, 8> isKept;
  selectHighest(scores, count, std::span(isKept).first(scores.size()));
  return std::vector<bool>(isKept.begin(), isKept.begin() + static_cast<int64_t>(scores.size()));
}

/// Where elements are 0.
std::vector<bool> maskOf(const OwnedWeight &weight) {
  std::vector<bool> mask;
  for (float element : weight.elements)
    mask.push_back(element == 0);
  return mask;
}

void expectSurvivors(const OwnedWeight &weight, NmPattern pattern) {
  for (int64_t row = 0; row < weight.rows; ++row)
    for (int64_t begin = 0; begin < weight.columns; begin += pattern.width) {
      int64_t survivors = 0;
      for (int64_t i = 0; i < pattern.width; ++i)
        survivors += weight.at(row, begin + i) != 0;
      ASSERT_EQ(survivors, pattern.kept) << pattern.kept << ":" << pattern.width << ", row " << row << ", " << begin;
    }
}

TEST(SelectHighest, TakesTheFirstOfEqualOnes) {
  EXPECT_EQ(mark({1, 3, 2, 4}, 2), (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(mark({1, 1, 1, 1}, 2), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(mark({0, 5, 5, 5}, 2), (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(mark({2, 1}, 5), (std::vector<bool>{true, true}));
  EXPECT_EQ(mark({2, 1}, 0), (std::vector<bool>{false, false}));
}

TEST(SelectHighest, TakesNoNumberLast) {
  double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(mark({nan, -infinity, nan, 1}, 2), (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(mark({nan, nan, nan}, 2), (std::vector<bool>{true, true, false}));
}

double shrinkScale(std::vector<float> elements) {
  auto columns = static_cast<int64_t>(elements.size());
  return getShrinkScale({elements, 1, columns}, {2, 4});
}

TEST(ShrinkScale, MakesTheDifferenceSmallest) {
  EXPECT_DOUBLE_EQ(shrinkScale({1, -3, 2, 0.5}), 8.0 / 5); // S(w) = (0, -2, 1, 0)
  EXPECT_DOUBLE_EQ(shrinkScale({0, -3, 2, 0}), 1);         // which has the pattern already
  EXPECT_DOUBLE_EQ(shrinkScale({2, -2, 2, 2}), 1);         // S(w) = 0
  OwnedWeight weight(64, 1024);
  EXPECT_NEAR(getShrinkScale(weight.view(), {2, 4}), 1.4825, 0.02); // of normal elements
}

TEST(Prune, LeavesExactlyAsManyAsAsked) {
  for (NmPattern pattern : kPatterns) {
    int64_t columns = pattern.width * (pattern.width > 8 ? 3 : 45);
    OwnedHessian hessian = OwnedHessian::random(columns);
    auto factor = InverseFactor::create(hessian.view());
    ASSERT_TRUE(factor.ok()) << factor.status();
    OwnedWeight magnitude(19, columns), wanda = magnitude, sparseGpt = magnitude;
    pruneByMagnitude(magnitude.view(), pattern);
    pruneByWanda(wanda.view(), hessian.view(), pattern);
    pruneBySparseGpt(sparseGpt.view(), *factor, pattern);
    expectSurvivors(magnitude, pattern);
    expectSurvivors(wanda, pattern);
    expectSurvivors(sparseGpt, pattern);
  }
}

TEST(Prune, LeavesExactlyAsManyOfEqualOnes) {
  OwnedWeight weight(3, 16);
  std::ranges::fill(weight.elements, 0.5f);
  pruneByMagnitude(weight.view(), {2, 4});
  expectSurvivors(weight, {2, 4});
}

TEST(PruneByMagnitude, KeepsTheLargest) {
  OwnedWeight weight(1, 8);
  weight.elements = {1, -3, 2, 0.5, -1, 1, 4, 1};
  pruneByMagnitude(weight.view(), {2, 4});
  EXPECT_EQ(weight.elements, (std::vector<float>{0, -3, 2, 0, -1, 0, 4, 0}));
}

TEST(PruneByWanda, WeighsWithTheInputs) {
  OwnedWeight weight(1, 4);
  weight.elements = {1, -3, 2, 0.5};
  OwnedHessian hessian(4);
  for (int64_t i = 0; i < 4; ++i)
    hessian.at(i, i) = std::array{25.0f, 1.0f, 1.0f, 64.0f}[i]; // scores 5, 3, 2, 4
  pruneByWanda(weight.view(), hessian.view(), {2, 4});
  EXPECT_EQ(weight.elements, (std::vector<float>{1, 0, 0, 0.5}));
}

TEST(PruneBySparseGpt, IsMagnitudeForAMultipleOfTheIdentity) {
  for (float factor : {1.0f, 0.037f}) {
    OwnedWeight expected(21, 260), weight = expected;
    auto inverse = InverseFactor::create(OwnedHessian::identity(260, factor).view());
    ASSERT_TRUE(inverse.ok());
    pruneByMagnitude(expected.view(), {2, 4});
    pruneBySparseGpt(weight.view(), *inverse, {2, 4});
    EXPECT_EQ(weight.elements, expected.elements);
  }
}

TEST(PruneBySparseGpt, HasTheMaskOfWandaForADiagonal) {
  OwnedWeight expected(21, 260), weight = expected;
  OwnedHessian hessian = OwnedHessian::diagonal(260);
  auto inverse = InverseFactor::create(hessian.view(), {}, /*damping=*/0); // damping changes the order of scores
  ASSERT_TRUE(inverse.ok());
  pruneByWanda(expected.view(), hessian.view(), {2, 4});
  pruneBySparseGpt(weight.view(), *inverse, {2, 4});
  EXPECT_EQ(maskOf(weight), maskOf(expected));
  EXPECT_EQ(weight.elements, expected.elements); // and nothing to compensate
}

/// Of one group of all columns, the first is dropped: what is left is what least squares would make of it.
TEST(PruneBySparseGpt, IsConstrainedLeastSquaresInOneColumn) {
  constexpr int64_t columns = 100;
  OwnedWeight weight(8, columns);
  for (int64_t row = 0; row < weight.rows; ++row)
    for (int64_t i = 0; i < columns; ++i)
      weight.elements[row * columns + i] = i == 0 ? 0.4f : weight.at(row, i) + (weight.at(row, i) < 0 ? -9.0f : 9.0f);
  OwnedHessian hessian = OwnedHessian::random(columns);
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok());
  OwnedWeight pruned = weight;
  pruneBySparseGpt(pruned.view(), *factor, {columns - 1, columns});
  OwnedWeight expected = solveConstrained(weight, hessian.damped(kDamping), 0, std::vector<float>(weight.rows));
  for (size_t i = 0; i < weight.elements.size(); ++i)
    EXPECT_NEAR(pruned.elements[i], expected.elements[i], 1e-6 * std::abs(weight.elements[i])) << i;
  EXPECT_GT(std::abs(pruned.elements[1] - weight.elements[1]), 1e-3);
}

TEST(PruneBySparseGpt, ReportsTheErrorOfTheOutputs) {
  OwnedWeight weight(10, 300), pruned = weight;
  OwnedHessian hessian = OwnedHessian::random(300);
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok());
  double reported = pruneBySparseGpt(pruned.view(), *factor, {2, 4});
  EXPECT_NEAR(reported / errorIn(hessian.damped(kDamping), weight, pruned), 1, 1e-5); // elements are rounded to f32
}

TEST(PruneBySparseGpt, LosesLessThanTheOthers) {
  OwnedWeight weight(16, 256), magnitude = weight, wanda = weight, sparseGpt = weight;
  OwnedHessian hessian = OwnedHessian::random(256);
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok());
  pruneByMagnitude(magnitude.view(), {2, 4});
  pruneByWanda(wanda.view(), hessian.view(), {2, 4});
  pruneBySparseGpt(sparseGpt.view(), *factor, {2, 4});
  std::vector<double> plain = hessian.damped(0);
  EXPECT_LT(errorIn(plain, weight, wanda), errorIn(plain, weight, magnitude));
  EXPECT_LT(errorIn(plain, weight, sparseGpt), errorIn(plain, weight, wanda));
}

TEST(PruneBySparseGpt, ClearsColumnsWithoutInputs) {
  OwnedWeight weight(3, 8);
  OwnedHessian hessian = OwnedHessian::random(8);
  for (int64_t i = 0; i < 8; ++i)
    hessian.at(5, i) = hessian.at(i, 5) = 0;
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok());
  pruneBySparseGpt(weight.view(), *factor, {3, 4});
  for (int64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(weight.at(row, 5), 0);
    EXPECT_NE(weight.at(row, 4) * weight.at(row, 6) * weight.at(row, 7), 0); // it went first
  }
}

TEST(PruneBySparseGpt, IsTheSameForEveryNumberOfThreads) {
  OwnedWeight alone(50, 200), together = alone;
  auto factor = InverseFactor::create(OwnedHessian::random(200).view());
  ASSERT_TRUE(factor.ok());
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  double loss = pruneBySparseGpt(alone.view(), *factor, {2, 4});
  omp_set_num_threads(3);
  EXPECT_EQ(pruneBySparseGpt(together.view(), *factor, {2, 4}), loss);
  omp_set_num_threads(threads);
  EXPECT_EQ(together.elements, alone.elements);
}

} // namespace
} // namespace hone::compress
