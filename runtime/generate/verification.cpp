// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Feed, verify, keep.

#include "generate/verification.h"

#include <numeric>

namespace hone::rt {

absl::StatusOr<Verification> verifyDraft(LanguageModel &model, std::span<const int64_t> tokens,
                                         const DraftedTokens &drafted, Acceptance rule, TextSampler &sampler,
                                         SpeculationClock &clock) {
  std::vector<int64_t> fed(tokens.begin(), tokens.end());
  fed.insert(fed.end(), drafted.tokens.begin(), drafted.tokens.end());
  auto pending = std::ssize(tokens);
  int64_t rows = drafted.size() + 1;
  auto start = std::chrono::steady_clock::now();
  HONE_ASSIGN_OR_RETURN(io::Array logits, drafted.isChain()
                                              ? model.feed(fed, rows)
                                              : model.feedTree(fed, drafted.ancestorsAfter(pending), rows));
  Verification result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.vocabulary = logits.shape().back();
  absl::StatusOr<Verdict> verdict = sampler.verify(rule, logits, drafted);
  if (verdict.ok())
    static_cast<Verdict &>(result) = *std::move(verdict);
  clock.endVerification(result.path.size());
  std::vector<int64_t> kept(tokens.size());
  std::iota(kept.begin(), kept.end(), 0);
  for (int64_t node : result.path)
    kept.push_back(pending - 1 + node);
  HONE_RETURN_IF_ERROR(model.session().state().keep(kept));
  HONE_RETURN_IF_ERROR(verdict.status());
  return result;
}

} // namespace hone::rt
