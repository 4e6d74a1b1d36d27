// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drafts of matches, and chains and trees of a draft model.

#include "generate/text_drafter.h"

#include "generate/model_drafter.h"
#include "speculate/draft_length.h"

#include <algorithm>

namespace hone::rt {
namespace {

using io::invalid;

/// What followed the end of the text where it was before. Of the drafted tokens those are accepted that the sampler draws too, so that tokens,
/// their probabilities and the draws that they take are those of decoding without drafts.
class MatchDrafter : public TextDrafter {
public:
  MatchDrafter(Speculation &speculation, std::span<const int64_t> prompt) : speculation(speculation) {
    speculation.beginText(prompt);
  }

  absl::StatusOr<DraftedTokens> draft(const LanguageModel &model, int64_t pending, int64_t most,
                                      TextSampler &) override {
    found = speculation.draft(most);
    chosen = chooseWidth(model, pending);
    return DraftedTokens{found.first(chosen)};
  }

  void take(const Verdict &verdict, int64_t, std::optional<double> seconds) override {
    if (seconds)
      speculation.record(found, chosen, verdict, *seconds);
    speculation.append(verdict.next);
  }

  Acceptance rule() const override { return Acceptance::Identical; }

private:
  /// None where the model has no room for as many, or a call for so many tokens of a tree.
  int64_t chooseWidth(const LanguageModel &model, int64_t pending) const {
    int64_t count = speculation.chooseWidth(found), all = pending + count;
    if (count == 0 || (all > speculate::kMostTreeTokens && !found.isChain()))
      return 0;
    return model.checkRoom(all).ok() ? count : 0;
  }

  Speculation &speculation;
  speculate::Draft found;
  int64_t chosen = 0; // of the found tokens
};

/// What both kinds of drafts of a model share. A draft is chosen by `length`: how many tokens of a chain, how many depths of a tree.
class ModelTextDrafter : public TextDrafter {
public:
  ModelTextDrafter(Speculation &speculation, std::span<const int64_t> prompt)
      : speculation(speculation), options(speculation.settings()),
        drafter(*options.draft, prompt, options.leastConfidence, speculation.drafterTimes()) {
    speculation.beginText(prompt);
  }

  Acceptance rule() const override { return options.acceptance; }

protected:
  bool isIdentical() const { return options.acceptance == Acceptance::Identical; }
  speculate::DraftLength &length() const { return speculation.draftLength(); }

  void append(const Verdict &verdict, int64_t ofTarget) {
    vocabulary = ofTarget;
    drafter.append(verdict.next);
  }

  /// After drafting. The pass over the prompt has no draft, so both vocabularies are known here, also where the artefacts do not fix them.
  absl::Status checkVocabulary() const {
    if (drafter.vocabulary() == vocabulary)
      return absl::OkStatus();
    return invalid("expected the draft model to have the target's vocabulary of ", vocabulary, " tokens, but got ",
                   drafter.vocabulary());
  }

  Speculation &speculation;
  const SpeculationOptions &options;
  ModelDrafter drafter;
  int64_t vocabulary = 0; // of the target
};

class ModelChainDrafter : public ModelTextDrafter {
public:
  using ModelTextDrafter::ModelTextDrafter;

  absl::StatusOr<DraftedTokens> draft(const LanguageModel &model, int64_t pending, int64_t most,
                                      TextSampler &sampler) override {
    drafted = 0;
    most = std::min(most, options.mostDrafted);
    int64_t count = isIdentical() ? length().choose(most, drafter.costs()) : most;
    if (count <= 0 || !model.checkRoom(pending + count).ok())
      return DraftedTokens();
    TextSampler ahead = sampler;
    HONE_ASSIGN_OR_RETURN(DraftedTokens tokens, drafter.draft(count, options.acceptance, ahead));
    drafted = tokens.size();
    if (drafted > 0)
      HONE_RETURN_IF_ERROR(checkVocabulary());
    // Where the text has to be the one without drafts, the model is going to draw what the drafter drew. Otherwise draws have to be new ones.
    if (!isIdentical())
      sampler.drawAfter(ahead);
    return tokens;
  }

  void take(const Verdict &verdict, int64_t ofTarget, std::optional<double> seconds) override {
    append(verdict, ofTarget);
    if (seconds)
      length().record(drafted, std::ssize(verdict.path), *seconds, drafter.costs().perToken);
  }

private:
  int64_t drafted = 0;
};

/// The tokens of a tree are the likeliest ones and not drawn, so that any rule for those leaves the text's probabilities as they are.
class ModelTreeDrafter : public ModelTextDrafter {
public:
  using ModelTextDrafter::ModelTextDrafter;

  absl::StatusOr<DraftedTokens> draft(const LanguageModel &model, int64_t pending, int64_t most,
                                      TextSampler &) override {
    HONE_RETURN_IF_ERROR(grow(pending, most));
    chosen = chooseWidth(model, pending);
    return DraftedTokens{grown.first(chosen)};
  }

  void take(const Verdict &verdict, int64_t ofTarget, std::optional<double> seconds) override {
    append(verdict, ofTarget);
    if (!seconds)
      return;
    length().record(chosen > 0 ? depth : 0, std::ssize(verdict.path), *seconds, drafter.costs().perToken);
    speculation.record(grown, chosen, verdict, *seconds);
  }

private:
  /// A tree whose paths have at most `most` tokens.
  absl::Status grow(int64_t pending, int64_t most) {
    grown = {};
    depth = 0;
    speculate::TreeShape shape = options.shape;
    most = std::min({most, options.mostDrafted, shape.depths()});
    int64_t depths = isIdentical() ? length().choose(most, drafter.costs()) : most;
    bool isPrompt = pending > 1; // of which a call verifies no tree beside
    if (depths <= 0 || isPrompt)
      return absl::OkStatus();
    shape.limit(depths);
    speculate::TreeExpansion expansion(shape, options.pruner.get());
    HONE_RETURN_IF_ERROR(drafter.draftTree(expansion));
    if (expansion.depth() > 0)
      HONE_RETURN_IF_ERROR(checkVocabulary());
    grown = expansion.rank();
    depth = expansion.depth();
    return absl::OkStatus();
  }

  /// Of a tree that was drafted, a token at least; none where the model has no room.
  int64_t chooseWidth(const LanguageModel &model, int64_t pending) const {
    int64_t most = std::min({grown.size(), options.mostDrafted, speculate::kMostTreeTokens - 1});
    int64_t count = isIdentical() ? std::max<int64_t>(speculation.chooseWidth(grown), 1) : most;
    count = std::min(count, most);
    return model.checkRoom(pending + count).ok() ? count : 0;
  }

  speculate::Draft grown;
  int64_t depth = 0, chosen = 0; // of the grown tree; of its tokens
};

} // namespace

absl::StatusOr<std::unique_ptr<TextDrafter>> createTextDrafter(const LanguageModel &model, Speculation &speculation,
                                                               std::span<const int64_t> prompt) {
  if (model.session().isBounded())
    return invalid(model.session().module().folder(),
                   ": unsupported speculation with a bounded number of keys: which are evicted depends on the calls");
  if (!speculation.usesModel())
    return std::make_unique<MatchDrafter>(speculation, prompt);
  if (speculation.settings().draftsTrees)
    return std::make_unique<ModelTreeDrafter>(speculation, prompt);
  return std::make_unique<ModelChainDrafter>(speculation, prompt);
}

} // namespace hone::rt
