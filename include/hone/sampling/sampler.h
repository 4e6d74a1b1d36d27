// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From logits to the next token. The same options, seed and logits give the same tokens on every platform, devices among them:
// the generator and how a draw of it falls on a token are fixed here, the arithmetic in arithmetic.h.

#ifndef HONE_SAMPLING_SAMPLER_H
#define HONE_SAMPLING_SAMPLER_H

#include "hone/io/status.h"
#include "hone/sampling/options.h"

#include "absl/types/span.h"

#include <cstdint>
#include <random>
#include <vector>

namespace hone::sampling {

struct TokenProbability {
  int32_t id;
  double probability;
};

/// Why no token could be chosen from so many logits: a code of arithmetic.h.
absl::Status badLogits(int64_t code, int64_t vocabulary);

/// Fails for a history with a token that has no logit.
absl::Status checkHistory(absl::Span<const int32_t> history, int64_t vocabulary);

/// The first of the largest logits. Fails for logits of which one is NaN or +infinity or none is above -infinity.
absl::StatusOr<int32_t> findLargest(absl::Span<const float> logits);

/// Where logits are equal, the lower id counts as the larger one. One a sequence; not for several threads at once.
class Sampler {
public:
  /// Fails for options out of their ranges.
  static absl::StatusOr<Sampler> create(const SamplingOptions &options);

  /// The next token after `history`, the ids of prompt and answer so far. Fails for logits of which one is NaN or
  /// +infinity or none is above -infinity, and for ids in the history that have no logit.
  absl::StatusOr<int32_t> sample(absl::Span<const float> logits, absl::Span<const int32_t> history);

  /// What sample() draws from: the tokens that are kept and their probabilities, by id. One token where the temperature
  /// is 0.
  absl::StatusOr<std::vector<TokenProbability>> distribution(absl::Span<const float> logits,
                                                             absl::Span<const int32_t> history) const;

  /// The next draw of the generator (std::mt19937_64, whose sequence the C++ standard fixes). sample() takes one for each token,
  /// and none where the temperature is 0: a token whose weights, added up by id, are the first to exceed it as a share of
  /// all weights is chosen.
  uint64_t draw() { return generator(); }

private:
  explicit Sampler(const SamplingOptions &options) : options(options), generator(options.seed) {}

  SamplingOptions options;
  std::mt19937_64 generator;
};

} // namespace hone::sampling

#endif // HONE_SAMPLING_SAMPLER_H
