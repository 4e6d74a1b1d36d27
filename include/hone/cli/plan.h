// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `hone tune --prune=auto` and `hone plan --probe` ask of the P2 law's points.

#ifndef HONE_CLI_PLAN_H
#define HONE_CLI_PLAN_H

#include "hone/io/status.h"

#include <set>
#include <string>

namespace hone::cli {

/// A model to prune, and what it is to become. Losses are nats a token.
struct PruningGoal {
  double parameters = 0, denseLoss = 0;
  double targetLoss = 0;
  double tokens = 0; // of training after the pruning
};

/// How to prune: `structured` or N:M, the share of the parameters, and the loss that the P2 law predicts, with an interval from the 5th to the
/// 95th percentile of bootstrap fits.
struct PlannedPruning {
  std::string kind;
  double rate = 0;
  double loss = 0, low = 0, high = 0;
  bool isExtrapolated = false; // model or tokens lie outside of the points
};

/// The largest rate with which the goal is reached, by the points of `file` (docs/compression.md). Fails where that cannot be read or
/// fitted, and where no rate of the points reaches the goal.
absl::StatusOr<PlannedPruning> planPruning(const std::string &file, const PruningGoal &goal);

/// A measured loss, as `hone plan` reads it.
struct ProbePoint {
  std::string kind;
  double parameters = 0, rate = 0, tokens = 0, denseLoss = 0, loss = 0;
  std::string run; // all that the loss follows from
};

/// What the points of a file that probes wrote are of (ProbePoint::run); none where there is no file. Fails as planPruning does where
/// it has no points.
absl::StatusOr<std::set<std::string>> readProbes(const std::string &file);

/// Adds a line to `file`, which is created where there is none: as a whole or not at all. Fails where it cannot be written.
absl::Status addProbe(const std::string &file, const ProbePoint &point);

} // namespace hone::cli

#endif // HONE_CLI_PLAN_H
