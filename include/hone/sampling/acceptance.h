// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of the drafted tokens of a position a text goes on with, and with what otherwise. All but the typical rule leave tokens distributed
// as without drafts.

#ifndef HONE_SAMPLING_ACCEPTANCE_H
#define HONE_SAMPLING_ACCEPTANCE_H

#include "hone/sampling/sampler.h"

#include "absl/functional/function_ref.h"

namespace hone::sampling {

/// Tokens and their probabilities, by ascending id; tokens that are not named have none. They add up to 1 where a rule takes them.
/// Both the target's p and the drafter's q are what Sampler::distribution gives, so that all options of sampling count on both sides.
using Distribution = std::vector<TokenProbability>;

/// The next of independent numbers, uniform over all 64 bits.
using Draws = absl::FunctionRef<uint64_t()>;

/// Fails with the position of the text and the value where a probability is negative or not finite, where none is above 0, and where ids do
/// not ascend.
absl::Status checkDistribution(absl::Span<const TokenProbability> distribution, int64_t position);

/// Of a distribution that checkDistribution accepts, which need not add up to 1: the token that a draw falls on.
int32_t drawFrom(absl::Span<const TokenProbability> distribution, uint64_t draw);

/// The next token. `accepted` is its number among the drafted tokens, or -1 where none of them was accepted.
struct Choice {
  int32_t token = 0;
  int64_t accepted = -1;
};

// The rules. `drafted` are the tokens that were drafted for one position, of which there may be none. They fail as checkDistribution does.

/// The most probable token of `p`, of several the one with the lowest id.
absl::StatusOr<Choice> chooseGreedy(const Distribution &p, absl::Span<const int32_t> drafted, int64_t position);

/// For tokens that were drawn from `q` independently of each other. A token x is accepted with probability min(1, p(x) / q(x)), and where
/// it is not, p becomes the residual max(p - q, 0), normalised. With one token this is speculative sampling (Leviathan et al. 2023, Chen
/// et al. 2023), with several that of SpecInfer (Miao et al. 2024). Fails for a drafted token that `q` does not have.
absl::StatusOr<Choice> chooseSampled(const Distribution &p, const Distribution &q, absl::Span<const int32_t> drafted,
                                     int64_t position, Draws draws);

/// The same for tokens that were drawn from `q` without replacement: q loses each token that was refused and is normalised (recursive
/// rejection, Jeon et al. 2024). Fails for a token that is drafted twice.
absl::StatusOr<Choice> chooseDistinct(const Distribution &p, const Distribution &q, absl::Span<const int32_t> drafted,
                                      int64_t position, Draws draws);

/// For tokens that were not drawn: the best of a drafter, or what followed elsewhere. A token x is accepted with probability p(x), and
/// where it is not, p loses it and is normalised (as chooseSampled with all of q on x).
absl::StatusOr<Choice> chooseDeterministic(const Distribution &p, absl::Span<const int32_t> drafted, int64_t position,
                                           Draws draws);

/// Thresholds of chooseTypical.
struct TypicalOptions {
  double epsilon = 0.09, delta = 0.3;
};

/// Lossy: tokens are not distributed as without drafts. Accepts the first drafted token x with p(x) > min(epsilon, delta · exp(-H(p))),
/// where H is the entropy in nats; otherwise draws from `p` (Cai et al. 2024, typical acceptance of Medusa).
absl::StatusOr<Choice> chooseTypical(const Distribution &p, absl::Span<const int32_t> drafted, int64_t position,
                                     Draws draws, const TypicalOptions &options = {});

} // namespace hone::sampling

#endif // HONE_SAMPLING_ACCEPTANCE_H
