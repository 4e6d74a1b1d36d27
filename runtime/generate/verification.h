// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pass of a model over a draft, wherever that is from.

#ifndef HONE_RUNTIME_GENERATE_VERIFICATION_H
#define HONE_RUNTIME_GENERATE_VERIFICATION_H

#include "generate/speculation_clock.h"
#include "generate/text_sampler.h"

namespace hone::rt {

/// What a pass over a draft gave.
struct Verification {
  std::vector<int64_t> next; // the accepted tokens and one of the model's own, which is not fed
  int64_t vocabulary = 0;    // of the model
  double seconds = 0;        // of the pass

  int64_t accepted() const { return static_cast<int64_t>(next.size()) - 1; }
};

/// Feeds `tokens` and the draft, verifies it by `rule`, and takes back what was refused. Fails with all that comes after `tokens` taken back.
absl::StatusOr<Verification> verifyDraft(LanguageModel &model, std::span<const int64_t> tokens,
                                         const DraftedTokens &drafted, Acceptance rule, TextSampler &sampler,
                                         SpeculationClock &clock);

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_VERIFICATION_H
