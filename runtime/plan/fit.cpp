// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fits of the P2 law. Parameters of a fit are unconstrained: those of the law that have a sign are their exponentials.

#include "plan/p2_law.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>
#include <unsupported/Eigen/LevenbergMarquardt>

namespace hone::plan {
namespace {

using io::invalid;

enum Place { Alpha, Beta, Gamma, Delta, ModelTerm, TokenTerm, Floor, kPlaces };

constexpr double kHuberThreshold = 1e-3;
constexpr int kStarts = 48, kMostEvaluations = 400;
constexpr size_t kLeastPoints = 4, kLeastRuns = 4;

/// What a fit varies: some of the law's parameters.
struct Variables {
  std::vector<Place> places;
  double parameterUnit, tokenUnit;

  P2Law lawOf(const Eigen::VectorXd &x) const {
    std::array<double, kPlaces> values = {};
    for (size_t i = 0; i < places.size(); ++i) {
      double value = x[static_cast<Eigen::Index>(i)];
      values[places[i]] = places[i] == Delta ? value : std::exp(value);
    }
    return {values[Alpha],     values[Beta],  0 - values[Gamma], values[Delta], values[ModelTerm],
            values[TokenTerm], values[Floor], parameterUnit,     tokenUnit};
  }

  Eigen::VectorXd variablesOf(const P2Law &law) const {
    std::array<double, kPlaces> values = {law.alpha,     law.beta,      0 - law.gamma, law.delta,
                                          law.modelTerm, law.tokenTerm, law.floor};
    Eigen::VectorXd x(static_cast<Eigen::Index>(places.size()));
    for (size_t i = 0; i < places.size(); ++i)
      x[static_cast<Eigen::Index>(i)] =
          places[i] == Delta ? values[Delta] : std::log(std::max(values[places[i]], 1e-300));
    return x;
  }
};

double huber(double residual) {
  double size = std::abs(residual);
  return size <= kHuberThreshold ? residual * residual / 2 : kHuberThreshold * (size - kHuberThreshold / 2);
}

/// What least squares take for Huber's loss: half its square is that, and its sign the residual's.
double rootOfHuber(double residual) { return std::copysign(std::sqrt(2 * huber(residual)), residual); }

double logError(const P2Law &law, const LossPoint &point) {
  return std::log(law.lossOf(point.pruning, point.tokens)) - std::log(point.loss);
}

/// Residuals of points, differentiated by differences.
struct Residuals : Eigen::DenseFunctor<double> {
  Residuals(std::span<const LossPoint> points, const Variables &variables)
      : DenseFunctor(static_cast<int>(variables.places.size()),
                     static_cast<int>(std::max(points.size(), variables.places.size()))),
        points(points), variables(variables) {}

  /// Rows without a point are 0: the method needs as many as there are variables.
  int operator()(const Eigen::VectorXd &x, Eigen::VectorXd &residuals) const {
    P2Law law = variables.lawOf(x);
    residuals.setZero();
    for (size_t i = 0; i < points.size(); ++i) {
      double residual = rootOfHuber(logError(law, points[i]));
      residuals[static_cast<Eigen::Index>(i)] = std::isfinite(residual) ? residual : 1e3;
    }
    return 0;
  }

  int df(const Eigen::VectorXd &x, Eigen::MatrixXd &jacobian) const {
    Eigen::VectorXd above(values()), below(values());
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      double step = 1e-6 * std::max(1.0, std::abs(x[i]));
      Eigen::VectorXd moved = x;
      moved[i] = x[i] + step;
      (*this)(moved, above);
      moved[i] = x[i] - step;
      (*this)(moved, below);
      jacobian.col(i) = (above - below) / (2 * step);
    }
    return 0;
  }

  std::span<const LossPoint> points;
  const Variables &variables;
};

double costOf(const P2Law &law, std::span<const LossPoint> points) {
  double cost = 0;
  for (const LossPoint &point : points)
    cost += huber(logError(law, point));
  return std::isfinite(cost) ? cost : INFINITY;
}

P2Law refine(std::span<const LossPoint> points, const Variables &variables, Eigen::VectorXd x) {
  Residuals residuals(points, variables);
  Eigen::LevenbergMarquardt<Residuals> method(residuals);
  method.setMaxfev(kMostEvaluations);
  method.setFtol(1e-14);
  method.setXtol(1e-12);
  method.minimize(x);
  return variables.lawOf(x);
}

template <typename Get> size_t countDifferent(std::span<const LossPoint> points, Get get) {
  std::set<double> values;
  for (const LossPoint &point : points)
    values.insert(get(point));
  return values.size();
}

template <typename Get> double geometricMean(std::span<const LossPoint> points, Get get) {
  double sum = 0;
  for (const LossPoint &point : points)
    sum += std::log(get(point));
  return std::exp(sum / static_cast<double>(points.size()));
}

double parametersOf(const LossPoint &point) { return point.pruning.parameters; }
double rateOf(const LossPoint &point) { return point.pruning.rate; }
double tokensOf(const LossPoint &point) { return point.tokens; }

Identified identify(std::span<const LossPoint> points) {
  size_t models = countDifferent(points, parametersOf);
  return {countDifferent(points, rateOf) > 1, models > 1, models > 2};
}

Variables chooseVariables(std::span<const LossPoint> points, const Identified &identified) {
  Variables variables = {
      {Beta, TokenTerm, Floor}, geometricMean(points, parametersOf), geometricMean(points, tokensOf)};
  if (identified.rate)
    variables.places.push_back(Gamma);
  if (identified.model)
    variables.places.push_back(Delta);
  if (identified.modelTerm)
    variables.places.insert(variables.places.end(), {Alpha, ModelTerm});
  return variables;
}

/// The mean of what the points lost, which the terms of a start share.
double meanExcess(std::span<const LossPoint> points) {
  double sum = 0;
  for (const LossPoint &point : points)
    sum += std::max(point.loss - point.pruning.denseLoss, 1e-3 * point.loss);
  return sum / static_cast<double>(points.size());
}

P2Law drawStart(std::mt19937_64 &random, double excess) {
  // Not std::uniform_real_distribution, whose numbers differ between libraries.
  auto draw = [&](double from, double to) {
    return from + (to - from) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  P2Law law;
  law.alpha = draw(0.05, 1);
  law.beta = draw(0.05, 1.2);
  law.gamma = -draw(0.2, 4);
  law.delta = draw(-0.4, 0.4);
  law.modelTerm = excess * draw(0.05, 2);
  law.tokenTerm = excess * draw(0.05, 2);
  law.floor = excess * draw(0.01, 1);
  return law;
}

double relativeError(const P2Law &law, const LossPoint &point) {
  return law.lossOf(point.pruning, point.tokens) / point.loss - 1;
}

bool isSameRun(const LossPoint &left, const LossPoint &right) {
  return left.pruning.parameters == right.pruning.parameters && left.pruning.rate == right.pruning.rate &&
         left.pruning.denseLoss == right.pruning.denseLoss;
}

/// The points of each Pruning, by ascending tokens.
std::vector<std::vector<LossPoint>> listRuns(std::span<const LossPoint> points) {
  std::vector<std::vector<LossPoint>> runs;
  for (const LossPoint &point : points) {
    auto run = std::ranges::find_if(runs, [&](const auto &found) { return isSameRun(found[0], point); });
    if (run == runs.end())
      run = runs.insert(runs.end(), std::vector<LossPoint>());
    run->push_back(point);
  }
  for (std::vector<LossPoint> &run : runs)
    std::ranges::sort(run, {}, &LossPoint::tokens);
  return runs;
}

/// Prediction::slopeDifference of one run, and how many pairs of neighbours it is the sum of.
std::pair<double, size_t> sumSlopeDifferences(const P2Law &law, std::span<const LossPoint> run) {
  double sum = 0;
  size_t pairs = 0;
  for (size_t i = 0; i + 1 < run.size(); ++i) {
    double tokens = run[i + 1].tokens - run[i].tokens;
    if (tokens <= 0)
      continue;
    double predicted = law.lossOf(run[i + 1].pruning, run[i + 1].tokens) - law.lossOf(run[i].pruning, run[i].tokens);
    sum += std::abs(predicted - (run[i + 1].loss - run[i].loss)) / tokens;
    ++pairs;
  }
  return {sum, pairs};
}

Prediction compare(const P2Law &law, std::span<const LossPoint> points) {
  Prediction prediction = {points.size()};
  for (const LossPoint &point : points) {
    double error = std::abs(relativeError(law, point));
    prediction.meanError += error / static_cast<double>(points.size());
    prediction.largestError = std::max(prediction.largestError, error);
  }
  double slopes = 0;
  size_t pairs = 0;
  for (const std::vector<LossPoint> &run : listRuns(points)) {
    auto [sum, count] = sumSlopeDifferences(law, run);
    slopes += sum;
    pairs += count;
  }
  prediction.slopeDifference = pairs > 0 ? slopes / static_cast<double>(pairs) : 0;
  return prediction;
}

size_t drawIndex(std::mt19937_64 &random, size_t count) { return static_cast<size_t>(random() % count); }

/// As many runs as there are, drawn with replacement.
std::vector<LossPoint> drawRuns(std::mt19937_64 &random, const std::vector<std::vector<LossPoint>> &runs) {
  std::vector<LossPoint> drawn;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::vector<LossPoint> &run = runs[drawIndex(random, runs.size())];
    drawn.insert(drawn.end(), run.begin(), run.end());
  }
  return drawn;
}

/// What the law says of each point, with the error of another.
std::vector<LossPoint> drawResiduals(std::mt19937_64 &random, std::span<const LossPoint> points, const P2Law &law) {
  std::vector<LossPoint> drawn(points.begin(), points.end());
  for (LossPoint &point : drawn)
    point.loss =
        law.lossOf(point.pruning, point.tokens) * std::exp(-logError(law, points[drawIndex(random, points.size())]));
  return drawn;
}

} // namespace

absl::StatusOr<P2Fit> fitP2Law(std::span<const LossPoint> points, uint64_t seed) {
  if (points.size() < kLeastPoints)
    return invalid("expected at least ", kLeastPoints, " points to fit, but got ", points.size());
  if (countDifferent(points, tokensOf) < 2)
    return invalid("expected points of several numbers of tokens, but all have ", points[0].tokens);
  P2Fit fit = {{}, identify(points)};
  Variables variables = chooseVariables(points, fit.identified);
  std::mt19937_64 random(seed);
  double least = INFINITY, excess = meanExcess(points);
  for (int start = 0; start < kStarts; ++start) {
    P2Law law = refine(points, variables, variables.variablesOf(drawStart(random, excess)));
    if (double cost = costOf(law, points); cost < least) {
      least = cost;
      fit.law = law;
    }
  }
  if (!std::isfinite(least))
    return invalid("no P2 law fits these points");
  double squares = 0;
  for (const LossPoint &point : points)
    squares += std::pow(relativeError(fit.law, point), 2);
  fit.relativeError = std::sqrt(squares / static_cast<double>(points.size()));
  return fit;
}

std::vector<P2Law> bootstrapP2Law(std::span<const LossPoint> points, const P2Fit &fit, int draws, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<LossPoint>> runs = listRuns(points);
  Variables variables = chooseVariables(points, fit.identified);
  Eigen::VectorXd start = variables.variablesOf(fit.law);
  std::vector<P2Law> laws;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<LossPoint> drawn =
        runs.size() < kLeastRuns ? drawResiduals(random, points, fit.law) : drawRuns(random, runs);
    P2Law law = refine(drawn, variables, start);
    if (std::isfinite(costOf(law, drawn)))
      laws.push_back(law);
  }
  return laws;
}

absl::StatusOr<Prediction> predictBudgets(std::span<const LossPoint> points, double share, uint64_t seed) {
  std::vector<LossPoint> known, unknown;
  for (const std::vector<LossPoint> &run : listRuns(points)) {
    auto count = static_cast<size_t>(std::ceil(share * static_cast<double>(run.size()) - 1e-9));
    known.insert(known.end(), run.begin(), run.begin() + static_cast<std::ptrdiff_t>(count));
    unknown.insert(unknown.end(), run.begin() + static_cast<std::ptrdiff_t>(count), run.end());
  }
  if (unknown.empty())
    return invalid("runs have too few points to keep some of them back");
  HONE_ASSIGN_OR_RETURN(P2Fit fit, fitP2Law(known, seed));
  return compare(fit.law, unknown);
}

absl::StatusOr<Prediction> predictLargestRate(std::span<const LossPoint> points, uint64_t seed) {
  if (countDifferent(points, rateOf) < 3)
    return invalid("expected points of three rates or more");
  double largest = std::ranges::max(points, {}, rateOf).pruning.rate;
  std::vector<LossPoint> known, unknown;
  for (const LossPoint &point : points)
    (point.pruning.rate == largest ? unknown : known).push_back(point);
  HONE_ASSIGN_OR_RETURN(P2Fit fit, fitP2Law(known, seed));
  return compare(fit.law, unknown);
}

} // namespace hone::plan
