// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Points of a known law.

#ifndef HONE_TEST_UNIT_PLAN_LAW_POINTS_H
#define HONE_TEST_UNIT_PLAN_LAW_POINTS_H

#include "plan/p2_law.h"

#include <cmath>
#include <random>

namespace hone::plan {

/// alpha, beta, gamma, delta, N_C, D_C, E, and the units of N0 and D.
inline P2Law knownLaw() { return {0.35, 0.42, -2.2, 0.08, 0.3, 0.6, 0.4, 1e8, 1e6}; }

/// A loss that falls with the size of the model.
inline double denseLossOf(double parameters) { return 1.7 + 8 * std::pow(parameters, -0.1); }

/// Losses of the law, each off by a normal relative error of this size.
inline std::vector<LossPoint> pointsOf(const P2Law &law, const std::vector<double> &models,
                                       const std::vector<double> &rates, const std::vector<double> &budgets,
                                       double noise = 0, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> error(0, 1);
  std::vector<LossPoint> points;
  for (double parameters : models)
    for (double rate : rates)
      for (double tokens : budgets) {
        Pruning pruning = {parameters, rate, denseLossOf(parameters)};
        points.push_back({pruning, tokens, law.lossOf(pruning, tokens) * (1 + noise * error(random))});
      }
  return points;
}

inline const std::vector<double> kModels = {2e7, 7e7, 2e8, 6e8}, kRates = {0.15, 0.25, 0.35, 0.5},
                                 kBudgets = {1e5, 3e5, 1e6, 2e6, 4e6, 8e6, 1.6e7, 2.4e7, 3.2e7, 4e7};

} // namespace hone::plan

#endif // HONE_TEST_UNIT_PLAN_LAW_POINTS_H
