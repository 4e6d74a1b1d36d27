// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sampling of texts. A rule sees the probabilities that the sampler draws from, whatever its options are.

#include "generate/text_sampler.h"

#include <algorithm>
#include <cmath>

namespace hone::rt {

TextSampler::TextSampler(sampling::Sampler sampler, std::span<const int64_t> prompt, const io::TokenRules &rules,
                         int64_t most)
    : sampler(std::move(sampler)), rules(rules), first(std::ssize(prompt)), last(first + most - 1) {
  for (int64_t token : prompt)
    history.push_back(static_cast<int32_t>(token));
}

/// The logits of the next token, minus infinity for those that it cannot be: in `allowed`, or as they are without rules.
std::span<const float> TextSampler::applyRules(std::span<const float> logits, std::vector<float> &allowed) const {
  if (rules.isEmpty())
    return logits;
  allowed.assign(logits.begin(), logits.end());
  auto suppress = [&](std::span<const int64_t> tokens) {
    for (int64_t token : tokens)
      if (token >= 0 && token < std::ssize(allowed))
        allowed[static_cast<size_t>(token)] = -INFINITY;
  };
  suppress(rules.never);
  if (length() == first)
    suppress(rules.notFirst);
  if (length() == last && rules.last && *rules.last >= 0 && *rules.last < std::ssize(allowed)) {
    std::ranges::fill(allowed, -INFINITY);
    allowed[static_cast<size_t>(*rules.last)] = 0;
  }
  return allowed;
}

absl::StatusOr<int64_t> TextSampler::sample(std::span<const float> given) {
  std::vector<float> allowed;
  std::span<const float> logits = applyRules(given, allowed);
  HONE_ASSIGN_OR_RETURN(int32_t token, sampler.sample({logits.data(), logits.size()}, history));
  history.push_back(token);
  return token;
}

absl::Status TextSampler::draft(Acceptance rule, std::span<const float> given, DraftedTokens &drafted) {
  if (rule != Acceptance::Exact) {
    HONE_ASSIGN_OR_RETURN(int64_t token, sample(given));
    drafted.tokens.push_back(token);
    return absl::OkStatus();
  }
  std::vector<float> allowed;
  std::span<const float> logits = applyRules(given, allowed);
  HONE_ASSIGN_OR_RETURN(sampling::Distribution q, sampler.distribution({logits.data(), logits.size()}, history));
  int32_t token = sampling::drawFrom(q, sampler.draw());
  history.push_back(token);
  drafted.tokens.push_back(token);
  drafted.distributions.push_back(std::move(q));
  return absl::OkStatus();
}

absl::StatusOr<sampling::Choice> TextSampler::choose(Acceptance rule, std::span<const float> given,
                                                     const DraftedTokens &drafted, std::span<const int64_t> children) {
  std::vector<int32_t> here;
  for (int64_t child : children)
    here.push_back(static_cast<int32_t>(drafted.tokenOf(child)));
  if (rule == Acceptance::Identical) {
    HONE_ASSIGN_OR_RETURN(int64_t token, sample(given));
    auto found = std::ranges::find(here, token);
    return sampling::Choice{static_cast<int32_t>(token), found == here.end() ? -1 : found - here.begin()};
  }
  std::vector<float> allowed;
  std::span<const float> logits = applyRules(given, allowed);
  HONE_ASSIGN_OR_RETURN(sampling::Distribution p, sampler.distribution({logits.data(), logits.size()}, history));
  auto draws = [this] { return sampler.draw(); };
  auto chosen = [&]() -> absl::StatusOr<sampling::Choice> {
    if (rule == Acceptance::Typical)
      return sampling::chooseTypical(p, here, length(), draws);
    if (here.empty() || drafted.distributions.empty())
      return sampling::chooseDeterministic(p, here, length(), draws);
    // Those that follow one token are drawn from the same.
    const sampling::Distribution &q = drafted.distributions[static_cast<size_t>(children.front()) - 1];
    return sampling::chooseSampled(p, q, here, length(), draws);
  };
  HONE_ASSIGN_OR_RETURN(sampling::Choice choice, chosen());
  history.push_back(choice.token);
  return choice;
}

absl::StatusOr<Verdict> TextSampler::verify(Acceptance rule, std::span<const float> logits, int64_t vocabulary,
                                            const DraftedTokens &drafted) {
  auto nodes = static_cast<size_t>(drafted.size()) + 1, width = static_cast<size_t>(vocabulary);
  std::span<const float> rows = logits.last(nodes * width);
  Verdict verdict;
  for (int64_t node = 0; node >= 0;) {
    std::vector<int64_t> children = drafted.childrenOf(node);
    std::span<const float> row = rows.subspan(static_cast<size_t>(node) * width, width);
    HONE_ASSIGN_OR_RETURN(sampling::Choice choice, choose(rule, row, drafted, children));
    verdict.next.push_back(choice.token);
    node = choice.accepted < 0 ? -1 : children[static_cast<size_t>(choice.accepted)];
    if (node > 0)
      verdict.path.push_back(node);
  }
  return verdict;
}

} // namespace hone::rt
