// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Samples the tokens of a text, and verifies drafted ones against the model's logits.

#ifndef HONE_RUNTIME_GENERATE_TEXT_SAMPLER_H
#define HONE_RUNTIME_GENERATE_TEXT_SAMPLER_H

#include "hone/io/generation.h"
#include "hone/sampling/acceptance.h"
#include "speculate/draft_tree.h"

#include <span>

namespace hone::rt {

/// Which drafted tokens are accepted.
enum class Acceptance {
  Identical, // those that the sampler draws too: the text is the one without drafts
  Exact,     // by speculative sampling: the text has the probabilities of one without drafts
  Typical,   // those that are typical for the model: lossy
};

struct DraftedTokens : speculate::DraftTree {
  /// What each was drawn from, for Acceptance::Exact; empty where tokens were not drawn but are the likeliest ones.
  std::vector<sampling::Distribution> distributions = {};
};

/// What the model makes of a draft.
struct Verdict {
  std::vector<int64_t> next; // the accepted tokens and one of the model's own
  std::vector<int64_t> path; // the nodes of the accepted ones
};

/// The sampler of one text, with the tokens so far. A copy draws what the original is going to draw.
class TextSampler {
public:
  TextSampler(sampling::Sampler sampler, std::span<const int64_t> prompt)
      : TextSampler(std::move(sampler), prompt, {}, 0) {}
  /// `rules` hold for the `most` tokens after the prompt.
  TextSampler(sampling::Sampler sampler, std::span<const int64_t> prompt, const io::TokenRules &rules, int64_t most);

  /// Position of the next token.
  int64_t length() const { return static_cast<int64_t>(history.size()); }

  /// The next token, which the text gets.
  absl::StatusOr<int64_t> sample(std::span<const float> logits);

  /// Samples a token from a drafter's logits, for verification by that rule.
  absl::Status draft(Acceptance rule, std::span<const float> logits, DraftedTokens &drafted);

  /// Goes on with the draws after those of `other`.
  void drawAfter(const TextSampler &other) { sampler = other.sampler; }

  /// Takes drafted tokens as long as they are accepted, each from those that follow the one before, and one of the model's own; the text gets them.
  /// The last rows of `logits`, of so many numbers each, are those after each node.
  absl::StatusOr<Verdict> verify(Acceptance rule, std::span<const float> logits, int64_t vocabulary,
                                 const DraftedTokens &drafted);

private:
  /// The token after a row of logits, and its number among the drafted `children`, nodes that may follow; -1 where it is none of them.
  absl::StatusOr<sampling::Choice> choose(Acceptance rule, std::span<const float> logits, const DraftedTokens &drafted,
                                          std::span<const int64_t> children);

  std::span<const float> applyRules(std::span<const float> logits, std::vector<float> &allowed) const;

  sampling::Sampler sampler;
  std::vector<int32_t> history;
  io::TokenRules rules;
  int64_t first, last; // positions of the first and the last new token
};

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_TEXT_SAMPLER_H
