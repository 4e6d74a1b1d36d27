// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Feed, verify, take back.

#include "generate/verification.h"

namespace hone::rt {

absl::StatusOr<Verification> verifyDraft(LanguageModel &model, std::span<const int64_t> tokens,
                                         const DraftedTokens &drafted, Acceptance rule, TextSampler &sampler,
                                         SpeculationClock &clock) {
  std::vector<int64_t> fed(tokens.begin(), tokens.end());
  fed.insert(fed.end(), drafted.tokens.begin(), drafted.tokens.end());
  int64_t before = model.length() + std::ssize(tokens);
  auto start = std::chrono::steady_clock::now();
  HONE_ASSIGN_OR_RETURN(io::Array logits, model.feed(fed, std::ssize(drafted.tokens) + 1));
  Verification result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.vocabulary = logits.shape().back();
  absl::Status status = sampler.verify(rule, logits, drafted, result.next);
  int64_t accepted = std::max<int64_t>(result.accepted(), 0);
  clock.endVerification(static_cast<size_t>(accepted));
  HONE_RETURN_IF_ERROR(model.session().state().truncate(before + accepted));
  HONE_RETURN_IF_ERROR(status);
  return result;
}

} // namespace hone::rt
