// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Softmax of the logits that count.

#include "hone/sampling/expectation.h"

#include "hone/sampling/arithmetic.h"

#include <algorithm>
#include <cmath>

namespace hone::sampling {
namespace {

constexpr double kLeastLogit = -27.6; // beside the largest, log 1e-12: its exponential is not worth computing

/// By weight, where that is equal by id.
bool isLikelier(const TokenProbability &a, const TokenProbability &b) {
  return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
}

/// Tokens that count, and their weights beside that of the likeliest.
std::vector<TokenProbability> weigh(absl::Span<const float> logits, double largest) {
  std::vector<TokenProbability> tokens;
  for (size_t id = 0; id < logits.size(); ++id)
    if (double difference = logits[id] - largest; difference >= kLeastLogit)
      tokens.push_back({static_cast<int32_t>(id), portableExp(difference)});
  return tokens;
}

/// Brings the `count` likeliest to the front, in no order.
void selectFirst(std::vector<TokenProbability> &tokens, int64_t count) {
  if (std::ssize(tokens) > count)
    std::nth_element(tokens.begin(), tokens.begin() + count, tokens.end(), isLikelier);
}

} // namespace

absl::StatusOr<Expectation> expectationOf(absl::Span<const float> logits, int64_t count) {
  HONE_ASSIGN_OR_RETURN(int32_t largest, findLargest(logits));
  std::vector<TokenProbability> tokens = weigh(logits, logits[static_cast<size_t>(largest)]);
  double total = 0;
  for (const TokenProbability &token : tokens)
    total += token.probability;
  Expectation result;
  selectFirst(tokens, kEntropyTokens);
  for (size_t i = 0; i < std::min<size_t>(tokens.size(), kEntropyTokens); ++i)
    if (double share = tokens[i].probability / total; share > 0)
      result.entropy -= share * std::log(share);
  selectFirst(tokens, count);
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(count)));
  std::sort(tokens.begin(), tokens.end(), isLikelier);
  for (TokenProbability &token : tokens)
    token.probability /= total;
  result.likeliest = std::move(tokens);
  return result;
}

} // namespace hone::sampling
