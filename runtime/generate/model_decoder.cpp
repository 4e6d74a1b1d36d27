// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pass: the draft model writes on, the target verifies, and both keep what was accepted.

#include "generate/model_decoder.h"

#include "generate/model_drafter.h"
#include "generate/verification.h"
#include "speculate/draft_length.h"

namespace hone::rt {
namespace {

class ModelDecoder : public Decoder {
public:
  ModelDecoder(TextSampler sampler, Speculation &speculation, std::span<const int64_t> prompt)
      : sampler(std::move(sampler)), drafter(*speculation.settings().draft, prompt,
                                             speculation.settings().leastConfidence, speculation.drafterTimes()),
        length(speculation.draftLength()), rule(speculation.settings().acceptance),
        mostDrafted(speculation.settings().mostDrafted) {}

  absl::StatusOr<std::vector<int64_t>> decode(LanguageModel &model, std::span<const int64_t> tokens,
                                              int64_t most) override {
    SpeculationClock clock(counted);
    HONE_ASSIGN_OR_RETURN(DraftedTokens drafted, draft(model, tokens, most - 1));
    clock.endDraft(drafted.tokens.size());
    HONE_ASSIGN_OR_RETURN(Verification verified, verifyDraft(model, tokens, drafted, rule, sampler, clock));
    vocabulary = verified.vocabulary;
    if (tokens.size() == 1)
      length.record(drafted.size(), std::ssize(verified.path), verified.seconds, drafter.costs().perToken);
    drafter.append(verified.next);
    clock.endCommit();
    return verified.next;
  }

  SpeculationStatistics statistics() const override { return counted; }

private:
  absl::StatusOr<DraftedTokens> draft(const LanguageModel &model, std::span<const int64_t> tokens, int64_t most) {
    most = std::min(most, mostDrafted);
    int64_t count = rule == Acceptance::Identical ? length.choose(most, drafter.costs()) : most;
    if (count <= 0 || !model.checkRoom(std::ssize(tokens) + count).ok())
      return DraftedTokens();
    TextSampler ahead = sampler;
    HONE_ASSIGN_OR_RETURN(DraftedTokens drafted, drafter.draft(count, rule, ahead));
    // The pass over the prompt has no draft, so both are known here, also where the artefacts do not fix them.
    if (!drafted.tokens.empty() && drafter.vocabulary() != vocabulary)
      return io::invalid("expected the draft model to have the target's vocabulary of ", vocabulary,
                         " tokens, but got ", drafter.vocabulary());
    // Where the text has to be the one without drafts, the model is going to draw what the drafter drew. Otherwise draws have to be new ones.
    if (rule != Acceptance::Identical)
      sampler.drawAfter(ahead);
    return drafted;
  }

  TextSampler sampler;
  ModelDrafter drafter;
  speculate::DraftLength &length;
  SpeculationStatistics counted;
  Acceptance rule;
  int64_t mostDrafted, vocabulary = 0; // of the target
};

} // namespace

std::unique_ptr<Decoder> createModelDecoder(TextSampler sampler, Speculation &speculation,
                                            std::span<const int64_t> prompt) {
  return std::make_unique<ModelDecoder>(std::move(sampler), speculation, prompt);
}

} // namespace hone::rt
