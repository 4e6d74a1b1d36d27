// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What fitted laws answer: which rates and how many tokens reach a loss.

#ifndef HONE_RUNTIME_PLAN_PLAN_H
#define HONE_RUNTIME_PLAN_PLAN_H

#include "plan/points.h"

namespace hone::plan {

struct Question {
  double parameters = 0, denseLoss = 0; // of the model to be pruned
  std::optional<double> targetLoss;
  std::optional<double> budget; // tokens
  std::vector<double> rates;    // empty: those of the points
  double flatGain = 0.01;       // P2Law::tokensUntilFlat
  uint64_t seed = 0;
};

/// The fit's value, and the 5th and 95th percentile of the bootstrap. Infinite where nothing is enough.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

struct RatePlan {
  double rate = 0;
  bool isBeyond = false;          // rate, model or budget lie outside of the points
  std::optional<Estimate> tokens; // for the target; beyond the points where isTokensBeyond
  bool isTokensBeyond = false;
  std::optional<Estimate> loss; // after the budget
  Estimate flatAfter;           // tokens
};

struct KindPlan {
  std::string kind;
  size_t points = 0;
  double fewestTokens = 0, mostTokens = 0;
  P2Fit fit;
  Estimate alpha, beta, gamma, delta;
  std::optional<Prediction> budgets, largestRate; // nothing where there are too few points to keep some back
  std::vector<RatePlan> rates;
  std::optional<Estimate> bestRate; // the largest that reaches the target with the budget
};

/// Fits a law to each kind and answers the question. Fails where a kind has too few points.
absl::StatusOr<std::vector<KindPlan>> makePlan(const LossPoints &points, const Question &question);

/// A kind and a rate of it, and its loss after the budget.
struct Choice {
  std::string kind;
  double rate = 0;
  Estimate loss;
  bool isBeyond = false; // RatePlan::isBeyond
};

/// Of all kinds, the largest rate that reaches the target with the budget. Rates above those of the points are not chosen. Fails as
/// makePlan does, and where no rate of the points reaches the target, with the least loss that one reaches.
absl::StatusOr<Choice> chooseRate(const LossPoints &points, Question question);

} // namespace hone::plan

#endif // HONE_RUNTIME_PLAN_PLAN_H
