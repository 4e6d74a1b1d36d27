// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "plan/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace hone::plan {
namespace {

constexpr int kDraws = 200;
constexpr double kLowPercentile = 0.05, kHighPercentile = 0.95, kKnownShare = 0.8;

/// The smallest and the largest value of points.
struct Range {
  double least = INFINITY, most = 0;

  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool contains(double value) const { return value >= least && value <= most; }
};

struct Ranges {
  Range parameters, rates, tokens;

  explicit Ranges(std::span<const LossPoint> points) {
    for (const LossPoint &point : points) {
      parameters.add(point.pruning.parameters);
      rates.add(point.pruning.rate);
      tokens.add(point.tokens);
    }
  }
};

/// Laws that fit the points of one kind, and what they say together.
class Laws {
public:
  Laws(const P2Law &law, std::vector<P2Law> drawn) : law(law), drawn(std::move(drawn)) {}

  template <typename Get> Estimate estimate(Get get) const {
    std::vector<double> values;
    for (const P2Law &one : drawn)
      values.push_back(get(one));
    Estimate estimate = {get(law), get(law), get(law)};
    if (values.empty())
      return estimate;
    std::ranges::sort(values);
    auto at = [&](double share) { return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))]; };
    estimate.low = at(kLowPercentile);
    estimate.high = at(kHighPercentile);
    return estimate;
  }

private:
  P2Law law;
  std::vector<P2Law> drawn;
};

std::vector<double> chooseRates(std::span<const LossPoint> points, const P2Fit &fit, const Question &question) {
  std::set<double> rates;
  for (const LossPoint &point : points)
    rates.insert(point.pruning.rate);
  if (fit.identified.rate && !question.rates.empty()) // with one rate, its effect is not known
    return question.rates;
  return {rates.begin(), rates.end()};
}

RatePlan planRate(double rate, const Laws &laws, const Ranges &ranges, const Question &question) {
  Pruning pruning = {question.parameters, rate, question.denseLoss};
  RatePlan plan;
  plan.rate = rate;
  plan.isBeyond = !ranges.parameters.contains(question.parameters) || !ranges.rates.contains(rate) ||
                  (question.budget && !ranges.tokens.contains(*question.budget));
  plan.flatAfter = laws.estimate([&](const P2Law &law) { return law.tokensUntilFlat(pruning, question.flatGain); });
  if (question.budget)
    plan.loss = laws.estimate([&](const P2Law &law) { return law.lossOf(pruning, *question.budget); });
  if (question.targetLoss) {
    plan.tokens = laws.estimate(
        [&](const P2Law &law) { return law.tokensFor(pruning, *question.targetLoss).value_or(INFINITY); });
    plan.isTokensBeyond = !ranges.tokens.contains(plan.tokens->value);
  }
  return plan;
}

absl::StatusOr<KindPlan> planKind(const std::string &kind, std::span<const LossPoint> points,
                                  const Question &question) {
  absl::StatusOr<P2Fit> fit = fitP2Law(points, question.seed);
  if (!fit.ok())
    return io::invalid("kind '", kind, "': ", io::messageOf(fit.status()));
  Laws laws(fit->law, bootstrapP2Law(points, *fit, kDraws, question.seed));
  Ranges ranges(points);
  KindPlan plan;
  plan.kind = kind;
  plan.points = points.size();
  plan.fewestTokens = ranges.tokens.least;
  plan.mostTokens = ranges.tokens.most;
  plan.fit = *fit;
  plan.alpha = laws.estimate([](const P2Law &law) { return law.alpha; });
  plan.beta = laws.estimate([](const P2Law &law) { return law.beta; });
  plan.gamma = laws.estimate([](const P2Law &law) { return law.gamma; });
  plan.delta = laws.estimate([](const P2Law &law) { return law.delta; });
  if (absl::StatusOr<Prediction> known = predictBudgets(points, kKnownShare, question.seed); known.ok())
    plan.budgets = *known;
  if (absl::StatusOr<Prediction> known = predictLargestRate(points, question.seed); known.ok())
    plan.largestRate = *known;
  for (double rate : chooseRates(points, *fit, question))
    plan.rates.push_back(planRate(rate, laws, ranges, question));
  if (question.targetLoss && question.budget && fit->identified.rate)
    plan.bestRate = laws.estimate([&](const P2Law &law) {
      Pruning pruning = {question.parameters, 0, question.denseLoss};
      return std::min(1.0, law.rateFor(pruning, *question.budget, *question.targetLoss).value_or(0));
    });
  return plan;
}

} // namespace

absl::StatusOr<std::vector<KindPlan>> makePlan(const LossPoints &points, const Question &question) {
  std::vector<KindPlan> plans;
  for (const auto &[kind, known] : points) {
    HONE_ASSIGN_OR_RETURN(KindPlan plan, planKind(kind, known, question));
    plans.push_back(std::move(plan));
  }
  return plans;
}

/// The largest rate of a kind that was asked about and reaches the target, or nothing.
static std::optional<Choice> chooseOfKind(const KindPlan &plan, double target) {
  std::optional<Choice> choice;
  for (const RatePlan &rate : plan.rates)
    if (rate.loss->value <= target && (!choice || rate.rate > choice->rate))
      choice = Choice{plan.kind, rate.rate, *rate.loss, rate.isBeyond};
  return choice;
}

/// The rate between those of the points at which the law says the target, with what it says of it; nothing where that is none.
static absl::StatusOr<std::optional<Choice>> chooseBetween(const KindPlan &plan, const LossPoints &points,
                                                           Question question) {
  double least = INFINITY, most = 0;
  for (const RatePlan &rate : plan.rates) {
    least = std::min(least, rate.rate);
    most = std::max(most, rate.rate);
  }
  if (!plan.bestRate || plan.bestRate->value <= least || plan.bestRate->value >= most)
    return std::nullopt;
  question.rates = {plan.bestRate->value};
  HONE_ASSIGN_OR_RETURN(std::vector<KindPlan> plans, makePlan({{plan.kind, points.at(plan.kind)}}, question));
  const RatePlan &rate = plans.front().rates.front();
  return Choice{plan.kind, rate.rate, *rate.loss, rate.isBeyond};
}

absl::StatusOr<Choice> chooseRate(const LossPoints &points, Question question) {
  question.rates.clear();
  HONE_ASSIGN_OR_RETURN(std::vector<KindPlan> plans, makePlan(points, question));
  std::optional<Choice> best;
  double leastLoss = INFINITY;
  for (const KindPlan &plan : plans) {
    for (const RatePlan &rate : plan.rates)
      leastLoss = std::min(leastLoss, rate.loss->value);
    HONE_ASSIGN_OR_RETURN(std::optional<Choice> choice, chooseBetween(plan, points, question));
    if (!choice)
      choice = chooseOfKind(plan, *question.targetLoss);
    if (choice && (!best || choice->rate > best->rate))
      best = choice;
  }
  if (best)
    return *best;
  char message[256];
  std::snprintf(
      message, sizeof message,
      "no rate of the points reaches a loss of %.6g after %.6g tokens; the least loss that the law gives for one "
      "is %.4g",
      *question.targetLoss, *question.budget, leastLoss);
  return io::invalid(message);
}

} // namespace hone::plan
