// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Samples the tokens of a text, and verifies drafted ones against the model's logits.

#ifndef HONE_RUNTIME_GENERATE_TEXT_SAMPLER_H
#define HONE_RUNTIME_GENERATE_TEXT_SAMPLER_H

#include "hone/io/array.h"
#include "hone/sampling/acceptance.h"

#include <span>

namespace hone::rt {

/// Which drafted tokens are accepted.
enum class Acceptance {
  Identical, // those that the sampler draws too: the text is the one without drafts
  Exact,     // by speculative sampling: the text has the probabilities of one without drafts
  Typical,   // those that are typical for the model: lossy
};

struct DraftedTokens {
  std::vector<int64_t> tokens;
  std::vector<sampling::Distribution> distributions; // what each was drawn from, for Acceptance::Exact
};

/// The sampler of one text, with the tokens so far. A copy draws what the original is going to draw.
class TextSampler {
public:
  TextSampler(sampling::Sampler sampler, std::span<const int64_t> prompt);

  /// Position of the next token.
  int64_t length() const { return static_cast<int64_t>(history.size()); }

  /// The next token, which the text gets.
  absl::StatusOr<int64_t> sample(std::span<const float> logits);

  /// Samples a token from a drafter's logits, for verification by that rule.
  absl::Status draft(Acceptance rule, std::span<const float> logits, DraftedTokens &drafted);

  /// Goes on with the draws after those of `other`.
  void drawAfter(const TextSampler &other) { sampler = other.sampler; }

  /// Appends the next tokens to `next` and the text: drafted ones as long as they are accepted, and one of the model's own. The last rows of
  /// `logits` are those after the token before the draft and after each drafted token.
  absl::Status verify(Acceptance rule, const io::Array &logits, const DraftedTokens &drafted,
                      std::vector<int64_t> &next);

private:
  /// The token after a row of logits; `number` of the drafted token there, or the number of drafted tokens after the last.
  absl::StatusOr<int64_t> choose(Acceptance rule, std::span<const float> logits, const DraftedTokens &drafted,
                                 size_t number);

  sampling::Sampler sampler;
  std::vector<int32_t> history;
};

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_TEXT_SAMPLER_H
