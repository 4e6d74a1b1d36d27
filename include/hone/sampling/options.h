// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is asked of sampling, wherever it is done.

#ifndef HONE_SAMPLING_OPTIONS_H
#define HONE_SAMPLING_OPTIONS_H

#include <cstdint>

namespace hone::sampling {

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

} // namespace hone::sampling

#endif // HONE_SAMPLING_OPTIONS_H
