// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pass of a model over a draft, wherever that is from.

#ifndef HONE_RUNTIME_GENERATE_VERIFICATION_H
#define HONE_RUNTIME_GENERATE_VERIFICATION_H

#include "generate/speculation_clock.h"
#include "generate/text_sampler.h"

namespace hone::rt {

/// What a pass over a draft gave. The last of `next` is not fed.
struct Verification : Verdict {
  int64_t vocabulary = 0; // of the model
  double seconds = 0;     // of the pass, and of taking back what was refused
};

/// Feeds `tokens` and the draft, verifies it by `rule`, and keeps of it what was accepted. A chain is fed as text is, and what is no chain
/// takes LanguageModel::feedTree. A state with slots that are replaced as a whole returns to a checkpoint where tokens are refused, and is fed
/// the accepted ones again. Fails with all that comes after `tokens` taken back.
absl::StatusOr<Verification> verifyDraft(LanguageModel &model, std::span<const int64_t> tokens,
                                         const DraftedTokens &drafted, Acceptance rule, TextSampler &sampler,
                                         SpeculationClock &clock);

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_VERIFICATION_H
