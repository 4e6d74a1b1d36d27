// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "law_points.h"

#include <gtest/gtest.h>

namespace hone::plan {
namespace {

Pruning pruningOf(double parameters, double rate) { return {parameters, rate, denseLossOf(parameters)}; }

double largestError(const P2Law &fitted, const P2Law &known, const std::vector<double> &models,
                    const std::vector<double> &rates, const std::vector<double> &budgets) {
  double largest = 0;
  for (const LossPoint &point : pointsOf(known, models, rates, budgets))
    largest = std::max(largest, std::abs(fitted.lossOf(point.pruning, point.tokens) / point.loss - 1));
  return largest;
}

TEST(P2Law, FollowsItsFormula) {
  P2Law law = {0.5, 1, -2, 0.5, 3, 7, 11, 1, 1};
  // rate^2 · N0^-1/2 · (3 / N0^1/2 + 7 / D + 11)
  EXPECT_DOUBLE_EQ(law.lossOf({4, 0.5, 2}, 14), 2 + 0.25 / 2 * (1.5 + 0.5 + 11));
}

TEST(P2Law, FallsWithTokensEverSlowerAndGrowsWithTheRate) {
  P2Law law = knownLaw();
  Pruning pruning = pruningOf(1e8, 0.3);
  for (double tokens = 1e4; tokens < 1e9; tokens *= 2) {
    double loss = law.lossOf(pruning, tokens), later = law.lossOf(pruning, 2 * tokens);
    EXPECT_LT(later, loss);
    EXPECT_GT(loss - later, later - law.lossOf(pruning, 3 * tokens));
    EXPECT_GT(law.lossOf(pruningOf(1e8, 0.31), tokens), loss);
  }
}

TEST(P2Law, InvertsItself) {
  P2Law law = knownLaw();
  Pruning pruning = pruningOf(1e8, 0.3);
  EXPECT_NEAR(*law.tokensFor(pruning, law.lossOf(pruning, 5e6)), 5e6, 1);
  EXPECT_EQ(law.tokensFor(pruning, law.leastLoss(pruning)), std::nullopt);
  EXPECT_NEAR(*law.rateFor(pruning, 5e6, law.lossOf(pruning, 5e6)), 0.3, 1e-9);
  EXPECT_EQ(*law.rateFor(pruning, 5e6, pruning.denseLoss - 1), 0);
  double tokens = law.tokensUntilFlat(pruning, 0.01);
  EXPECT_NEAR(law.lossOf(pruning, tokens) - law.lossOf(pruning, 2 * tokens), 0.01, 1e-9);
}

TEST(P2Law, FitPredictsUnseenModelsRatesAndBudgets) {
  absl::StatusOr<P2Fit> fit = fitP2Law(pointsOf(knownLaw(), kModels, kRates, kBudgets));
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_LT(fit->relativeError, 1e-5);
  EXPECT_LT(largestError(fit->law, knownLaw(), {4e7, 1.2e9}, {0.1, 0.3, 0.6}, {5e4, 5e6, 1e8}), 1e-4);
}

TEST(P2Law, FitTakesOutliersForThat) {
  std::vector<LossPoint> points = pointsOf(knownLaw(), kModels, kRates, kBudgets, 1e-4);
  for (size_t i = 7; i < points.size(); i += 20)
    points[i].loss *= 1.2;
  absl::StatusOr<P2Fit> fit = fitP2Law(points);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_LT(largestError(fit->law, knownLaw(), kModels, kRates, kBudgets), 2e-3);
}

TEST(P2Law, FitKeepsSignsWhatevertheLosses) {
  std::vector<LossPoint> points = pointsOf(knownLaw(), kModels, kRates, kBudgets);
  for (size_t i = 0; i < points.size(); ++i)
    points[i].loss = 2 + 0.1 * static_cast<double>(i * 7919 % 101) / 101;
  absl::StatusOr<P2Fit> fit = fitP2Law(points);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_GT(fit->law.alpha, 0);
  EXPECT_GT(fit->law.beta, 0);
  EXPECT_LE(fit->law.gamma, 0);
  EXPECT_GE(fit->law.floor, 0);
  EXPECT_GE(fit->law.modelTerm, 0);
}

TEST(P2Law, OneRateAndOneModelLeaveTheirExponentsOut) {
  P2Law known = knownLaw();
  absl::StatusOr<P2Fit> fit = fitP2Law(pointsOf(known, {1e8}, {0.5}, kBudgets));
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_FALSE(fit->identified.rate || fit->identified.model || fit->identified.modelTerm);
  EXPECT_EQ(fit->law.gamma, 0);
  EXPECT_EQ(fit->law.delta, 0);
  EXPECT_EQ(fit->law.rateFor(pruningOf(1e8, 0.5), 1e6, 3), std::nullopt);
  EXPECT_LT(largestError(fit->law, known, {1e8}, {0.5}, {2e5, 6e7}), 1e-4);
}

TEST(P2Law, RefusesTooFewPoints) {
  std::vector<LossPoint> points = pointsOf(knownLaw(), {1e8}, {0.5}, {1e5, 1e6, 1e7});
  EXPECT_EQ(fitP2Law(points).status().message(), "expected at least 4 points to fit, but got 3");
  points = pointsOf(knownLaw(), {1e8}, kRates, {1e5});
  EXPECT_TRUE(io::messageOf(fitP2Law(points).status()).starts_with("expected points of several numbers of tokens"));
}

TEST(P2Law, PredictsWhatWasKeptBack) {
  std::vector<LossPoint> points = pointsOf(knownLaw(), kModels, kRates, kBudgets, 1e-3);
  absl::StatusOr<Prediction> budgets = predictBudgets(points, 0.8), rate = predictLargestRate(points);
  ASSERT_TRUE(budgets.ok()) << budgets.status();
  ASSERT_TRUE(rate.ok()) << rate.status();
  EXPECT_EQ(budgets->points, 2 * kModels.size() * kRates.size());
  EXPECT_LT(budgets->largestError, 0.01);
  EXPECT_EQ(rate->points, kModels.size() * kBudgets.size());
  EXPECT_LT(rate->largestError, 0.02);
  EXPECT_FALSE(predictLargestRate(pointsOf(knownLaw(), kModels, {0.15, 0.25}, kBudgets)).ok());
}

TEST(P2Law, SlopeDifferenceComparesNeighbours) {
  // The law keeps back the last two of ten budgets; these are raised by 0.1 and 0.3: slopes are off by 0.2 in 8e6 tokens.
  std::vector<LossPoint> points = pointsOf(knownLaw(), {1e8}, kRates, kBudgets);
  for (size_t i = 0; i < points.size(); ++i)
    points[i].loss += i % 10 == 8 ? 0.1 : i % 10 == 9 ? 0.3 : 0;
  absl::StatusOr<Prediction> prediction = predictBudgets(points, 0.8);
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_NEAR(prediction->slopeDifference, 0.2 / 8e6, 1e-3 * 0.2 / 8e6);
}

TEST(P2Law, BootstrapSpreadsAroundTheFit) {
  std::vector<LossPoint> points = pointsOf(knownLaw(), kModels, kRates, kBudgets, 2e-3);
  absl::StatusOr<P2Fit> fit = fitP2Law(points);
  ASSERT_TRUE(fit.ok()) << fit.status();
  std::vector<P2Law> laws = bootstrapP2Law(points, *fit, 50);
  EXPECT_GT(laws.size(), 45u);
  Pruning pruning = pruningOf(1e8, 0.3);
  double truth = knownLaw().lossOf(pruning, 1e7), least = INFINITY, most = 0;
  for (const P2Law &law : laws) {
    least = std::min(least, law.lossOf(pruning, 1e7));
    most = std::max(most, law.lossOf(pruning, 1e7));
  }
  EXPECT_LT(least, truth);
  EXPECT_GT(most, truth);
  EXPECT_LT(most - least, 0.02 * truth);
  EXPECT_EQ(bootstrapP2Law(points, *fit, 3, 9)[2].beta, bootstrapP2Law(points, *fit, 3, 9)[2].beta);
}

} // namespace
} // namespace hone::plan
