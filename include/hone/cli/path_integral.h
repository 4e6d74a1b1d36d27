// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `hone calibrate --pqi` does with an artefact whose entry `path_step` adds up gradients along a path of the weights.

#ifndef HONE_CLI_PATH_INTEGRAL_H
#define HONE_CLI_PATH_INTEGRAL_H

#include "hone/cli/tune.h"

namespace hone::cli {

/// The first tokens of a .npy, no more than `most` and the one that follows, in windows of `context`. Fails where they are less than one.
absl::StatusOr<TuningData> readPathTokens(const std::string &file, int64_t context, int64_t most);

struct PathIntegralOptions {
  int64_t intervals = 8;
  int threads = 0; // 0: one for each processor
};

/// The mean loss of all windows, in nats a token, where the path begins and where it ends, and what two estimates have for the difference:
/// the sum of the integrals of all weights, and the slope where the path begins, a Taylor series to the first order.
struct PathIntegral {
  double begin = 0, end = 0, integral = 0, firstOrder = 0;
};

/// Receives the integral of a weight, (e - w) ∫ g(w + s (e - w)) ds element by element: f32, row-major.
using IntegralReceiver = std::function<absl::Status(const std::string &name, std::span<const char> bytes)>;

/// Integrates over all windows with the midpoint rule. Fails where an id is outside the vocabulary, and where a loss or an integral is not
/// finite.
absl::StatusOr<PathIntegral> integratePath(const std::string &artefact, const TuningData &data,
                                           const PathIntegralOptions &options, const IntegralReceiver &receive);

} // namespace hone::cli

#endif // HONE_CLI_PATH_INTEGRAL_H
