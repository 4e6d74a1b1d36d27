// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Feed, verify, keep.

#include "generate/verification.h"

#include "core/seconds.h"

#include <chrono>
#include <numeric>

namespace hone::rt {
namespace {

/// Of the tokens of the last call, keeps those of these numbers. Slots without history go back to `before` the call, and the tokens are fed
/// again.
absl::Status keepTokens(LanguageModel &model, const Checkpoint *before, std::span<const int64_t> fed,
                        std::span<const int64_t> kept) {
  State &state = model.session().state();
  if (!before || kept.size() == fed.size())
    return state.keep(kept);
  HONE_RETURN_IF_ERROR(state.restore(*before));
  std::vector<int64_t> tokens;
  for (int64_t number : kept)
    tokens.push_back(fed[static_cast<size_t>(number)]);
  return model.feed(tokens, /*logitsToKeep=*/1).status();
}

} // namespace

absl::StatusOr<Verification> verifyDraft(LanguageModel &model, std::span<const int64_t> tokens,
                                         const DraftedTokens &drafted, Acceptance rule, TextSampler &sampler,
                                         SpeculationClock &clock) {
  std::vector<int64_t> fed(tokens.begin(), tokens.end());
  fed.insert(fed.end(), drafted.tokens.begin(), drafted.tokens.end());
  auto pending = std::ssize(tokens);
  int64_t rows = drafted.size() + 1;
  State &state = model.session().state();
  std::shared_ptr<const Checkpoint> before;
  if (drafted.size() > 0 && state.findWithoutHistory())
    before = state.checkpoint();
  auto start = std::chrono::steady_clock::now();
  HONE_ASSIGN_OR_RETURN(io::Array logits, drafted.isChain()
                                              ? model.feed(fed, rows)
                                              : model.feedTree(fed, drafted.ancestorsAfter(pending), rows));
  Verification result;
  result.seconds = secondsSince(start);
  result.vocabulary = logits.shape().back();
  absl::StatusOr<Verdict> verdict = sampler.verify(rule, logits.as<float>(), result.vocabulary, drafted);
  if (verdict.ok())
    static_cast<Verdict &>(result) = *std::move(verdict);
  clock.endVerification(result.path.size());
  std::vector<int64_t> kept(tokens.size());
  std::iota(kept.begin(), kept.end(), 0);
  for (int64_t node : result.path)
    kept.push_back(pending - 1 + node);
  start = std::chrono::steady_clock::now();
  HONE_RETURN_IF_ERROR(keepTokens(model, before.get(), fed, kept));
  result.seconds += secondsSince(start);
  HONE_RETURN_IF_ERROR(verdict.status());
  return result;
}

} // namespace hone::rt
