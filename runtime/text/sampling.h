// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From logits to the next token. The same options, seed and logits give the same tokens on every platform: the
// generator, its conversion to [0, 1) and the exponential function are fixed here and not taken from the system.

#ifndef HONE_RUNTIME_TEXT_SAMPLING_H
#define HONE_RUNTIME_TEXT_SAMPLING_H

#include "hone/io/status.h"

#include "absl/types/span.h"

#include <cstdint>
#include <random>
#include <vector>

namespace hone::text {

/// Applied in this order, as in Hugging Face transformers: repetition penalty, temperature, top-k, top-p, min-p.
struct SamplingOptions {
  /// Logits are divided by it; 0 takes the largest logit.
  double temperature = 0;
  /// Keeps this many of the largest; 0 keeps all.
  int64_t topK = 0;
  /// Keeps the fewest of the largest whose probabilities add up to it (Holtzman et al. 2020); 1 keeps all.
  double topP = 1;
  /// Keeps those at least this fraction as probable as the most probable (Nguyen et al. 2024); 0 keeps all.
  double minP = 0;
  /// Divides the positive and multiplies the negative logits of ids in the history (Keskar et al. 2019); 1 changes none.
  double repetitionPenalty = 1;
  uint64_t seed = 0;
};

struct TokenProbability {
  int32_t id;
  double probability;
};

/// exp(x) for x <= 0 to within 2 units in the last place, from IEEE additions and multiplications alone; 0 below -708.
double portableExp(double x);

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

  /// The next number of the generator (std::mt19937_64, whose sequence the C++ standard fixes): its upper 53 bits over
  /// 2^53, in [0, 1).
  double uniform();

private:
  explicit Sampler(const SamplingOptions &options) : options(options), generator(options.seed) {}

  SamplingOptions options;
  std::mt19937_64 generator;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_SAMPLING_H
