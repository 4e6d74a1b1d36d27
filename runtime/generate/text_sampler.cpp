// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sampling of texts. A rule sees the probabilities that the sampler draws from, whatever its options are.

#include "generate/text_sampler.h"

namespace hone::rt {

TextSampler::TextSampler(sampling::Sampler sampler, std::span<const int64_t> prompt) : sampler(std::move(sampler)) {
  for (int64_t token : prompt)
    history.push_back(static_cast<int32_t>(token));
}

absl::StatusOr<int64_t> TextSampler::sample(std::span<const float> logits) {
  HONE_ASSIGN_OR_RETURN(int32_t token, sampler.sample({logits.data(), logits.size()}, history));
  history.push_back(token);
  return token;
}

absl::Status TextSampler::draft(Acceptance rule, std::span<const float> logits, DraftedTokens &drafted) {
  if (rule != Acceptance::Exact) {
    HONE_ASSIGN_OR_RETURN(int64_t token, sample(logits));
    drafted.tokens.push_back(token);
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(sampling::Distribution q, sampler.distribution({logits.data(), logits.size()}, history));
  int32_t token = sampling::drawFrom(q, sampler.draw());
  history.push_back(token);
  drafted.tokens.push_back(token);
  drafted.distributions.push_back(std::move(q));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TextSampler::choose(Acceptance rule, std::span<const float> logits,
                                            const DraftedTokens &drafted, size_t number) {
  if (rule == Acceptance::Identical)
    return sample(logits);
  HONE_ASSIGN_OR_RETURN(sampling::Distribution p, sampler.distribution({logits.data(), logits.size()}, history));
  std::vector<int32_t> here;
  if (number < drafted.tokens.size())
    here.push_back(static_cast<int32_t>(drafted.tokens[number]));
  static const sampling::Distribution kNothing;
  bool isDrawn = !here.empty() && rule == Acceptance::Exact;
  const sampling::Distribution &q = isDrawn ? drafted.distributions[number] : kNothing;
  auto draws = [this] { return sampler.draw(); };
  HONE_ASSIGN_OR_RETURN(sampling::Choice choice, rule == Acceptance::Exact
                                                     ? sampling::chooseSampled(p, q, here, length(), draws)
                                                     : sampling::chooseTypical(p, here, length(), draws));
  history.push_back(choice.token);
  return choice.token;
}

absl::Status TextSampler::verify(Acceptance rule, const io::Array &logits, const DraftedTokens &drafted,
                                 std::vector<int64_t> &next) {
  size_t count = drafted.tokens.size();
  auto vocabulary = static_cast<size_t>(logits.shape().back());
  std::span<const float> rows = logits.as<float>().last((count + 1) * vocabulary);
  for (size_t row = 0; row <= count; ++row) {
    HONE_ASSIGN_OR_RETURN(int64_t token, choose(rule, rows.subspan(row * vocabulary, vocabulary), drafted, row));
    next.push_back(token);
    if (row < count && token != drafted.tokens[row])
      break;
  }
  return absl::OkStatus();
}

} // namespace hone::rt
