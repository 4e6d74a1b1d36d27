// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one text drafts for its next pass, whatever the drafts are from and whatever texts are in the pass besides.

#ifndef HONE_RUNTIME_GENERATE_TEXT_DRAFTER_H
#define HONE_RUNTIME_GENERATE_TEXT_DRAFTER_H

#include "generate/speculation.h"
#include "generate/text_sampler.h"

#include <optional>

namespace hone::rt {

/// Drafts for the passes of one text, one after the other: draft(), and take() of what became of that.
class TextDrafter {
public:
  virtual ~TextDrafter() = default;

  /// What the next pass of `model`, which verifies, feeds after the last `pending` tokens of the text: at most `most` tokens one after the
  /// other, and no more than the model has room for. `sampler` is the text's. Fails for logits of a draft model that no token can be drawn
  /// from, and for a draft model of another vocabulary.
  virtual absl::StatusOr<DraftedTokens> draft(const LanguageModel &model, int64_t pending, int64_t most,
                                              TextSampler &sampler) = 0;
  /// What the pass made of the draft. `vocabulary` is the model's. `seconds` are those of the pass where it fed the last token of the text and
  /// the draft alone, and nothing where it read a prompt.
  virtual void take(const Verdict &verdict, int64_t vocabulary, std::optional<double> seconds) = 0;
  /// Which drafted tokens are accepted.
  virtual Acceptance rule() const = 0;
};

/// A drafter of a text that begins with `prompt`, for `model`: with those of `speculation`, which outlives it, or with its draft model, whose
/// state begins anew. How many tokens are verified follows from times, those of earlier texts too, for Acceptance::Identical. With the other
/// rules the text depends on it, and as many are drafted as the options allow. Fails for a model that keeps a bounded number of keys.
absl::StatusOr<std::unique_ptr<TextDrafter>> createTextDrafter(const LanguageModel &model, Speculation &speculation,
                                                               std::span<const int64_t> prompt);

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_TEXT_DRAFTER_H
