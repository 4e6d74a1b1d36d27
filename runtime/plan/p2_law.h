// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// P2 law (Chen et al., "P2 Law: Scaling Law for Post-Training After Model Pruning", arXiv 2411.10272): the loss of a model that was pruned and
// then trained on.

#ifndef HONE_RUNTIME_PLAN_P2_LAW_H
#define HONE_RUNTIME_PLAN_P2_LAW_H

#include "hone/io/status.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hone::plan {

/// A pruned model: its parameters before pruning, which share of them was pruned, and its loss before that.
struct Pruning {
  double parameters, rate, denseLoss;
};

/// The loss of a pruned model after post-training on so many tokens. All are positive, the rate is below 1.
struct LossPoint {
  Pruning pruning;
  double tokens, loss;
};

/// L = L0 + rate^-gamma · N0^-delta · (N_C / N0^alpha + D_C / D^beta + E), with gamma at most 0, alpha and beta positive, N_C and E at least 0.
/// N0 and D are in units of references, so that coefficients of fits are of like size.
struct P2Law {
  double alpha = 0, beta = 0, gamma = 0, delta = 0;
  double modelTerm = 0, tokenTerm = 0, floor = 0; // N_C, D_C and E in those units
  double parameterUnit = 1, tokenUnit = 1;

  double lossOf(const Pruning &pruning, double tokens) const;
  /// The loss that no number of tokens reaches.
  double leastLoss(const Pruning &pruning) const;
  /// After how many tokens a loss is reached; nothing where none reaches it, 0 where it is that of the dense model or above every loss.
  std::optional<double> tokensFor(const Pruning &pruning, double loss) const;
  /// After how many tokens twice as many gain `gain` of loss, and from there on less.
  double tokensUntilFlat(const Pruning &pruning, double gain) const;
  /// The largest rate whose loss is at most `loss` after `tokens`; `pruning.rate` is not read. Nothing where rates make no difference.
  std::optional<double> rateFor(const Pruning &pruning, double tokens, double loss) const;

private:
  /// rate^-gamma · N0^-delta, and N_C / N0^alpha + E.
  double factorOf(const Pruning &pruning) const;
  double constantOf(const Pruning &pruning) const;
};

/// Which exponents the points tell apart. With one rate gamma is 0, with one model delta is, and with fewer than three models N_C is.
struct Identified {
  bool rate = false, model = false, modelTerm = false;
};

struct P2Fit {
  P2Law law;
  Identified identified;
  double relativeError = 0; // the root mean square of predicted by measured loss, less 1
};

/// Fits the logarithm of the loss with Huber's loss (threshold 1e-3, as in Hoffmann et al. 2022) by Levenberg and Marquardt's method from seeded starts.
/// Fails with fewer than four points, or where all have the same number of tokens.
absl::StatusOr<P2Fit> fitP2Law(std::span<const LossPoint> points, uint64_t seed = 0);

/// Fits of runs drawn with replacement, where a run is the points of one Pruning; with fewer than four runs, of residuals drawn so. Draws that
/// cannot be fitted are left out.
std::vector<P2Law> bootstrapP2Law(std::span<const LossPoint> points, const P2Fit &fit, int draws, uint64_t seed = 0);

/// What a fit of other points says about these.
struct Prediction {
  size_t points = 0;
  double meanError = 0, largestError = 0; // of predicted by measured loss, less 1
  double slopeDifference =
      0; // Average Slope Difference: of loss by tokens between a run's neighbours, predicted less measured; absolute, mean
};

/// Fits the `share` of each run's points that took the fewest tokens, and predicts the rest.
absl::StatusOr<Prediction> predictBudgets(std::span<const LossPoint> points, double share, uint64_t seed = 0);

/// Fits all but the points of the largest rate, and predicts those. Fails with fewer than three rates.
absl::StatusOr<Prediction> predictLargestRate(std::span<const LossPoint> points, uint64_t seed = 0);

} // namespace hone::plan

#endif // HONE_RUNTIME_PLAN_P2_LAW_H
