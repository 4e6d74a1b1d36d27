// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a model expects next, for trees of its drafts.

#ifndef HONE_SAMPLING_EXPECTATION_H
#define HONE_SAMPLING_EXPECTATION_H

#include "hone/sampling/sampler.h"

namespace hone::sampling {

/// Tokens whose entropy is taken: more of them hardly change it (C2T, Huo et al. 2025).
constexpr int64_t kEntropyTokens = 1000;

/// At temperature 1.
struct Expectation {
  std::vector<TokenProbability> likeliest; // by descending probability; where logits are equal, the lower id first
  double entropy = 0;                      // -sum p log p of the kEntropyTokens likeliest, in nats
};

/// With the `count` likeliest tokens, at least 1. Tokens less likely than the likeliest by 1e-12 are left out. Fails as findLargest does.
absl::StatusOr<Expectation> expectationOf(absl::Span<const float> logits, int64_t count);

} // namespace hone::sampling

#endif // HONE_SAMPLING_EXPECTATION_H
