// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Acceptance. Distributions are short lists where the options keep few tokens, so all is done on lists by id.

#include "hone/sampling/acceptance.h"

#include "hone/sampling/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hone::sampling {
namespace {

std::string textOf(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

/// Of 0 … 1, without 1.
double unitOf(uint64_t draw) { return static_cast<double>(draw >> 11) * 0x1p-53; }

double totalOf(absl::Span<const TokenProbability> distribution) {
  double total = 0;
  for (const TokenProbability &token : distribution)
    total += token.probability;
  return total;
}

/// The entry of a token, or the end.
Distribution::iterator find(Distribution &distribution, int32_t id) {
  auto found = std::lower_bound(distribution.begin(), distribution.end(), id,
                                [](const TokenProbability &token, int32_t id) { return token.id < id; });
  return found != distribution.end() && found->id == id ? found : distribution.end();
}

double probabilityOf(Distribution &distribution, int32_t id) {
  auto found = find(distribution, id);
  return found == distribution.end() ? 0 : found->probability;
}

/// Takes a token away; what is left adds up to less than before.
void remove(Distribution &distribution, int32_t id) {
  if (auto found = find(distribution, id); found != distribution.end())
    distribution.erase(found);
}

/// max(p / P - q / Q, 0), where P and Q are the sums of p and q. Where nothing is left, p and q are the same but for their last bits, and p stays.
void subtract(Distribution &p, const Distribution &q) {
  double ofP = totalOf(p), ofQ = totalOf(q);
  Distribution rest;
  auto other = q.begin();
  for (const TokenProbability &token : p) {
    while (other != q.end() && other->id < token.id)
      ++other;
    bool isInBoth = other != q.end() && other->id == token.id;
    double left = token.probability / ofP - (isInBoth ? other->probability / ofQ : 0);
    if (left > 0)
      rest.push_back({token.id, left});
  }
  if (!rest.empty())
    p = std::move(rest);
}

absl::Status refuseDrafted(int32_t token, double probability, int64_t position) {
  return io::invalid("cannot accept tokens at position ", position, ": token ", token,
                     " was drafted, but the drafter's probability of it is ", textOf(probability));
}

absl::StatusOr<Choice> chooseDrawn(Distribution p, Distribution q, absl::Span<const int32_t> drafted, int64_t position,
                                   Draws draws, bool isReplaced) {
  HONE_RETURN_IF_ERROR(checkDistribution(p, position));
  if (!drafted.empty())
    HONE_RETURN_IF_ERROR(checkDistribution(q, position));
  for (size_t i = 0; i < drafted.size(); ++i) {
    double ofTarget = probabilityOf(p, drafted[i]) / totalOf(p), ofDraft = probabilityOf(q, drafted[i]);
    if (!(ofDraft > 0))
      return refuseDrafted(drafted[i], ofDraft, position);
    if (unitOf(draws()) * (ofDraft / totalOf(q)) < ofTarget)
      return Choice{drafted[i], static_cast<int64_t>(i)};
    subtract(p, q);
    if (!isReplaced)
      remove(q, drafted[i]);
  }
  return Choice{drawFrom(p, draws()), -1};
}

double entropyOf(absl::Span<const TokenProbability> distribution) {
  double total = totalOf(distribution), entropy = 0;
  for (const TokenProbability &token : distribution)
    if (double share = token.probability / total; share > 0)
      entropy -= share * std::log(share);
  return entropy;
}

} // namespace

absl::Status checkDistribution(absl::Span<const TokenProbability> distribution, int64_t position) {
  double largest = 0;
  for (size_t i = 0; i < distribution.size(); ++i) {
    const TokenProbability &token = distribution[i];
    if (!(token.probability >= 0 && token.probability < INFINITY))
      return io::invalid("cannot accept tokens at position ", position, ": the probability of token ", token.id, " is ",
                         textOf(token.probability));
    if (i > 0 && token.id <= distribution[i - 1].id)
      return io::invalid("cannot accept tokens at position ", position, ": expected tokens by ascending id, but got ",
                         distribution[i - 1].id, " before ", token.id);
    largest = std::max(largest, token.probability);
  }
  if (largest > 0)
    return absl::OkStatus();
  return io::invalid("cannot accept tokens at position ", position, ": the largest of ", distribution.size(),
                     " probabilities is 0");
}

int32_t drawFrom(absl::Span<const TokenProbability> distribution, uint64_t draw) {
  double place = unitOf(draw) * totalOf(distribution);
  int32_t last = 0; // where rounding leaves the place at the sum
  for (const TokenProbability &token : distribution) {
    if (token.probability == 0)
      continue;
    last = token.id;
    if (place < token.probability)
      break;
    place -= token.probability;
  }
  return last;
}

absl::StatusOr<Choice> chooseGreedy(const Distribution &p, absl::Span<const int32_t> drafted, int64_t position) {
  HONE_RETURN_IF_ERROR(checkDistribution(p, position));
  auto best = std::max_element(p.begin(), p.end(), [](const TokenProbability &a, const TokenProbability &b) {
    return a.probability < b.probability;
  });
  auto found = std::find(drafted.begin(), drafted.end(), best->id);
  return Choice{best->id, found == drafted.end() ? -1 : found - drafted.begin()};
}

absl::StatusOr<Choice> chooseSampled(const Distribution &p, const Distribution &q, absl::Span<const int32_t> drafted,
                                     int64_t position, Draws draws) {
  return chooseDrawn(p, q, drafted, position, draws, /*isReplaced=*/true);
}

absl::StatusOr<Choice> chooseDistinct(const Distribution &p, const Distribution &q, absl::Span<const int32_t> drafted,
                                      int64_t position, Draws draws) {
  return chooseDrawn(p, q, drafted, position, draws, /*isReplaced=*/false);
}

absl::StatusOr<Choice> chooseDeterministic(const Distribution &p, absl::Span<const int32_t> drafted, int64_t position,
                                           Draws draws) {
  HONE_RETURN_IF_ERROR(checkDistribution(p, position));
  Distribution left = p;
  for (size_t i = 0; i < drafted.size(); ++i) {
    // A token that has all that is left is accepted by every draw, so something is left after a refusal.
    if (unitOf(draws()) * totalOf(left) < probabilityOf(left, drafted[i]))
      return Choice{drafted[i], static_cast<int64_t>(i)};
    remove(left, drafted[i]);
  }
  return Choice{drawFrom(left, draws()), -1};
}

absl::StatusOr<Choice> chooseTypical(const Distribution &p, absl::Span<const int32_t> drafted, int64_t position,
                                     Draws draws, const TypicalOptions &options) {
  HONE_RETURN_IF_ERROR(checkDistribution(p, position));
  Distribution known = p;
  double threshold = std::min(options.epsilon, options.delta * portableExp(-entropyOf(p))) * totalOf(p);
  for (size_t i = 0; i < drafted.size(); ++i)
    if (probabilityOf(known, drafted[i]) > threshold)
      return Choice{drafted[i], static_cast<int64_t>(i)};
  return Choice{drawFrom(p, draws()), -1};
}

} // namespace hone::sampling
