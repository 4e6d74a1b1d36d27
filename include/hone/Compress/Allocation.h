// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One form for each weight of a model, so that all of them fit a number of bytes and little is lost.

#ifndef HONE_COMPRESS_ALLOCATION_H
#define HONE_COMPRESS_ALLOCATION_H

#include "hone/io/status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace hone::compress {

/// What a weight costs in one of its forms.
struct Candidate {
  int64_t bytes; // 0 or more
  double loss;   // finite; losses of different weights add up
};

struct Allocation {
  std::vector<size_t> chosen; // a candidate for each weight
  int64_t bytes = 0;
  double loss = 0;
  /// No other choice of as few bytes as the budget loses less.
  bool isOptimal = false;
};

/// States that are kept for each weight by default.
constexpr size_t kMostStates = size_t(1) << 14;

/// Chooses one candidate of each weight with the least sum of losses among those whose bytes add up to no more than `budget`: the
/// multiple-choice knapsack problem. First steps down the convex hulls of the candidates, steepest first, which is the optimum
/// of the Lagrangian relaxation but for its last step (Sinha and Zoltners, "The Multiple-Choice Knapsack Problem",
/// 1979). Then weight after weight all sums that are neither dominated nor, by the relaxation's bound of what the rest loses,
/// worse than that. Where they are more than `mostStates`, those of the best bounds are kept, and the result may not be optimal.
/// Weights of the same shape have the same bytes, so that sums are few. The same result every time. Fails where a weight has no candidate, or the least of
/// all do not fit.
absl::StatusOr<Allocation> allocate(std::span<const std::vector<Candidate>> weights, int64_t budget,
                                    size_t mostStates = kMostStates);

} // namespace hone::compress

#endif // HONE_COMPRESS_ALLOCATION_H
