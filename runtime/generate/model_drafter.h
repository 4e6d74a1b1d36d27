// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drafts from a second model, which writes the text on by itself.

#ifndef HONE_RUNTIME_GENERATE_MODEL_DRAFTER_H
#define HONE_RUNTIME_GENERATE_MODEL_DRAFTER_H

#include "core/language_model.h"
#include "generate/text_sampler.h"
#include "speculate/draft_length.h"
#include "speculate/tree_expansion.h"

namespace hone::rt {

/// A session of a draft model: the entry `forward` of a module, or `draft` of a module that has the target besides. It is fit to draft
/// for `target`.
/// Fails where the draft's vocabulary is another, where tokens of the same id are others in the tokenizers, of which either may be
/// absent, and where the draft cannot take back tokens, has context or is divided among processes.
absl::StatusOr<std::unique_ptr<Session>> openDraftSession(std::shared_ptr<const Module> draft, std::string_view entry,
                                                          const Session &target, int threads = 0);

/// A draft model with the session that it drafts in.
class DraftModel {
public:
  /// Opens it as openDraftSession() does, and fails as that does.
  absl::Status open(std::shared_ptr<const Module> draft, std::string_view entry, const Session &target, int threads);
  /// Null before it is open.
  LanguageModel *get() { return model ? &*model : nullptr; }

private:
  std::unique_ptr<Session> session;
  std::optional<LanguageModel> model;
};

/// Follows a text with a draft model. Its session has the text up to some token, and what was drafted after it until it is known how the text
/// goes on.
class ModelDrafter {
public:
  /// `model` and `times` outlive the drafter; the model begins anew. A draft ends after the token with which the product of the draft model's
  /// probabilities, at temperature 1, falls below `confidence`.
  ModelDrafter(LanguageModel &model, std::span<const int64_t> prompt, double confidence,
               speculate::DrafterTimes &times);

  /// Tokens that the text got.
  void append(std::span<const int64_t> tokens) { text.insert(text.end(), tokens.begin(), tokens.end()); }

  /// At most `most` tokens that may come next, drawn by `sampler` for verification by `rule`; fewer where the model is not confident, or has
  /// no room. Fails for logits that no token can be drawn from.
  absl::StatusOr<DraftedTokens> draft(int64_t most, Acceptance rule, TextSampler &sampler);

  /// Grows a tree of what the model expects to come next; it stays as small as the room is. A pass for each depth feeds what is followed and what
  /// it comes after, for LanguageModel::feedTree. Fails as draft() does.
  absl::Status draftTree(speculate::TreeExpansion &expansion);

  /// Of the draft model; 0 before the first pass.
  int64_t vocabulary() const { return logitCount; }

  /// What drafting takes, on average of late.
  speculate::DrafterCosts costs() const;

private:
  bool hasRoom(size_t tokens) const { return model->checkRoom(static_cast<int64_t>(tokens)).ok(); }
  absl::Status takeBack();
  absl::Status keepPath();
  /// Feeds the text but for its end, of at most kPiece tokens, which it returns. None where it is not to be fed.
  absl::StatusOr<std::vector<int64_t>> catchUp();
  absl::StatusOr<io::Array> feed(std::span<const int64_t> tokens);
  absl::StatusOr<io::Array> feedPaths(const speculate::TreeExpansion &expansion);

  LanguageModel *model;
  std::vector<int64_t> text, fed; // `fed` is what the session has
  speculate::DraftTree fedTree;   // and after it, in the last call
  double confidence;
  speculate::DrafterTimes *times; // per pass that drafts, and per row where many are fed
  int64_t logitCount = 0;
};

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_MODEL_DRAFTER_H
