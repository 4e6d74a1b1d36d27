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

/// What both kinds of drafts share. A draft is chosen by `length`: how many tokens of a chain, how many depths of a tree.
class ModelDecoder : public Decoder {
public:
  ModelDecoder(TextSampler sampler, Speculation &speculation, std::span<const int64_t> prompt)
      : sampler(std::move(sampler)), speculation(speculation), options(speculation.settings()),
        drafter(*options.draft, prompt, options.leastConfidence, speculation.drafterTimes()) {
    speculation.beginText(prompt);
  }

  SpeculationStatistics statistics() const override { return counted; }

protected:
  bool isIdentical() const { return options.acceptance == Acceptance::Identical; }
  speculate::DraftLength &length() const { return speculation.draftLength(); }

  absl::StatusOr<Verification> verify(LanguageModel &model, std::span<const int64_t> tokens,
                                      const DraftedTokens &drafted, SpeculationClock &clock) {
    clock.endDraft(drafted.tokens.size());
    HONE_ASSIGN_OR_RETURN(Verification verified,
                          verifyDraft(model, tokens, drafted, options.acceptance, sampler, clock));
    vocabulary = verified.vocabulary;
    drafter.append(verified.next);
    return verified;
  }

  /// After drafting. The pass over the prompt has no draft, so both vocabularies are known here, also where the artefacts do not fix them.
  absl::Status checkVocabulary() const {
    if (drafter.vocabulary() == vocabulary)
      return absl::OkStatus();
    return io::invalid("expected the draft model to have the target's vocabulary of ", vocabulary, " tokens, but got ",
                       drafter.vocabulary());
  }

  TextSampler sampler;
  Speculation &speculation;
  const SpeculationOptions &options;
  ModelDrafter drafter;
  SpeculationStatistics counted;
  int64_t vocabulary = 0; // of the target
};

class ChainDecoder : public ModelDecoder {
public:
  using ModelDecoder::ModelDecoder;

  absl::StatusOr<std::vector<int64_t>> decode(LanguageModel &model, std::span<const int64_t> tokens,
                                              int64_t most) override {
    SpeculationClock clock(counted);
    HONE_ASSIGN_OR_RETURN(DraftedTokens drafted, draft(model, tokens, most - 1));
    HONE_ASSIGN_OR_RETURN(Verification verified, verify(model, tokens, drafted, clock));
    if (tokens.size() == 1)
      length().record(drafted.size(), std::ssize(verified.path), verified.seconds, drafter.costs().perToken);
    clock.endCommit();
    return verified.next;
  }

private:
  absl::StatusOr<DraftedTokens> draft(const LanguageModel &model, std::span<const int64_t> tokens, int64_t most) {
    most = std::min(most, options.mostDrafted);
    int64_t count = isIdentical() ? length().choose(most, drafter.costs()) : most;
    if (count <= 0 || !model.checkRoom(std::ssize(tokens) + count).ok())
      return DraftedTokens();
    TextSampler ahead = sampler;
    HONE_ASSIGN_OR_RETURN(DraftedTokens drafted, drafter.draft(count, options.acceptance, ahead));
    if (!drafted.tokens.empty())
      HONE_RETURN_IF_ERROR(checkVocabulary());
    // Where the text has to be the one without drafts, the model is going to draw what the drafter drew. Otherwise draws have to be new ones.
    if (!isIdentical())
      sampler.drawAfter(ahead);
    return drafted;
  }
};

/// The tokens of a tree are the likeliest ones and not drawn, so that any rule for those leaves the text's probabilities as they are.
class TreeDecoder : public ModelDecoder {
public:
  using ModelDecoder::ModelDecoder;

  absl::StatusOr<std::vector<int64_t>> decode(LanguageModel &model, std::span<const int64_t> tokens,
                                              int64_t most) override {
    SpeculationClock clock(counted);
    HONE_ASSIGN_OR_RETURN(Grown grown, grow(tokens, most - 1));
    int64_t count = chooseWidth(model, tokens, grown.draft);
    DraftedTokens drafted = {grown.draft.first(count)};
    HONE_ASSIGN_OR_RETURN(Verification verified, verify(model, tokens, drafted, clock));
    if (tokens.size() == 1) {
      length().record(count > 0 ? grown.depth : 0, std::ssize(verified.path), verified.seconds,
                      drafter.costs().perToken);
      speculation.record(grown.draft, count, verified, verified.seconds);
    }
    clock.endCommit();
    return verified.next;
  }

private:
  struct Grown {
    speculate::Draft draft;
    int64_t depth = 0;
  };

  /// A tree whose paths have at most `most` tokens.
  absl::StatusOr<Grown> grow(std::span<const int64_t> tokens, int64_t most) {
    speculate::TreeShape shape = options.shape;
    most = std::min({most, options.mostDrafted, shape.depths()});
    int64_t depth = isIdentical() ? length().choose(most, drafter.costs()) : most;
    bool isPrompt = tokens.size() > 1; // of which a call verifies no tree beside
    if (depth <= 0 || isPrompt)
      return Grown();
    shape.limit(depth);
    speculate::TreeExpansion expansion(shape, options.pruner.get());
    HONE_RETURN_IF_ERROR(drafter.draftTree(expansion));
    if (expansion.depth() > 0)
      HONE_RETURN_IF_ERROR(checkVocabulary());
    return Grown{expansion.rank(), expansion.depth()};
  }

  /// Of a tree that was drafted, a token at least; none where the model has no room.
  int64_t chooseWidth(const LanguageModel &model, std::span<const int64_t> tokens,
                      const speculate::Draft &draft) const {
    int64_t most = std::min({draft.size(), options.mostDrafted, speculate::kMostTreeTokens - 1});
    int64_t count = isIdentical() ? std::max<int64_t>(speculation.chooseWidth(draft), 1) : most;
    count = std::min(count, most);
    return model.checkRoom(std::ssize(tokens) + count).ok() ? count : 0;
  }
};

} // namespace

std::unique_ptr<Decoder> createModelDecoder(TextSampler sampler, Speculation &speculation,
                                            std::span<const int64_t> prompt) {
  if (speculation.settings().draftsTrees)
    return std::make_unique<TreeDecoder>(std::move(sampler), speculation, prompt);
  return std::make_unique<ChainDecoder>(std::move(sampler), speculation, prompt);
}

} // namespace hone::rt
