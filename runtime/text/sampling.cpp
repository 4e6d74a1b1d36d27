// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sampling. Built without contraction of floating-point operations (see CMakeLists.txt), in double precision.

#include "text/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hone::text {

namespace {

struct Candidate {
  int32_t id;
  double logit;
  double weight; // exp((logit - largest) / temperature)
};

using Candidates = std::vector<Candidate>;

bool isLarger(const Candidate &a, const Candidate &b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

std::string shortest(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

absl::Status checkRange(const char *name, double value, double lowest, double highest) {
  if (value >= lowest && value <= highest)
    return absl::OkStatus();
  return io::invalid("expected ", name, " to be from ", shortest(lowest), " to ", shortest(highest), ", but got ",
                     shortest(value));
}

absl::StatusOr<Candidates> readLogits(absl::Span<const float> logits) {
  Candidates candidates;
  candidates.reserve(logits.size());
  bool anyFinite = false;
  for (size_t id = 0; id < logits.size(); ++id) {
    float logit = logits[id];
    if (std::isnan(logit) || logit == INFINITY)
      return io::invalid("cannot choose a token: the logit of token ", id, " of ", logits.size(), " is ",
                         std::isnan(logit) ? "not a number" : "infinite");
    anyFinite |= logit != -INFINITY;
    candidates.push_back({static_cast<int32_t>(id), logit, 0});
  }
  if (!anyFinite)
    return io::invalid("cannot choose a token: none of ", logits.size(), " logits is above minus infinity");
  return candidates;
}

absl::Status penalize(Candidates &candidates, absl::Span<const int32_t> history, double penalty) {
  std::vector<bool> isDone(candidates.size());
  for (int32_t id : history) {
    if (id < 0 || static_cast<size_t>(id) >= candidates.size())
      return io::invalid("cannot choose a token: the history holds token ", id, ", but there are ", candidates.size(),
                         " logits");
    if (isDone[id])
      continue;
    isDone[id] = true;
    double &logit = candidates[id].logit;
    logit = logit < 0 ? logit * penalty : logit / penalty;
  }
  return absl::OkStatus();
}

void keepLargest(Candidates &candidates, int64_t count) {
  if (count == 0 || static_cast<size_t>(count) >= candidates.size())
    return;
  std::nth_element(candidates.begin(), candidates.begin() + count, candidates.end(), isLarger);
  candidates.resize(count);
}

double totalWeight(const Candidates &candidates) {
  double total = 0;
  for (const Candidate &candidate : candidates)
    total += candidate.weight;
  return total;
}

/// Sorts no more of the candidates than it keeps, within a factor.
void keepProbable(Candidates &candidates, double topP) {
  if (topP >= 1)
    return;
  constexpr size_t kFirstSorted = 64, kGrowth = 4;
  double target = topP * totalWeight(candidates), sum = 0;
  size_t sorted = 0, kept = 0;
  while (kept == 0 || (sum < target && kept < candidates.size())) {
    if (kept == sorted) {
      size_t end = std::min(std::max(kFirstSorted, sorted * kGrowth), candidates.size());
      auto begin = candidates.begin();
      std::partial_sort(begin + static_cast<ptrdiff_t>(sorted), begin + static_cast<ptrdiff_t>(end), candidates.end(),
                        isLarger);
      sorted = end;
    }
    sum += candidates[kept++].weight;
  }
  candidates.resize(kept);
}

/// The most probable has weight 1.
void keepRelative(Candidates &candidates, double minP) {
  if (minP > 0)
    std::erase_if(candidates, [&](const Candidate &candidate) { return candidate.weight < minP; });
}

} // namespace

double portableExp(double x) {
  constexpr double kLowest = -708, kLog2E = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33; // Cody and Waite's split of ln 2
  constexpr int kTerms = 13; // of the Taylor series, enough for |r| <= ln(2) / 2
  if (x < kLowest)
    return 0;
  double n = std::nearbyint(x * kLog2E);
  double r = (x - n * kLn2High) - n * kLn2Low;
  double sum = 1;
  for (int term = kTerms; term > 0; --term)
    sum = 1 + sum * r / term;
  return std::ldexp(sum, static_cast<int>(n));
}

absl::StatusOr<Sampler> Sampler::create(const SamplingOptions &options) {
  constexpr double kLargest = 1e6; // of temperature and penalty: beyond, a typing error
  HONE_RETURN_IF_ERROR(checkRange("temperature", options.temperature, 0, kLargest));
  HONE_RETURN_IF_ERROR(checkRange("top-p", options.topP, 0, 1));
  HONE_RETURN_IF_ERROR(checkRange("min-p", options.minP, 0, 1));
  if (!(options.repetitionPenalty > 0 && options.repetitionPenalty <= kLargest))
    return io::invalid("expected the repetition penalty to be above 0 and at most ", shortest(kLargest), ", but got ",
                       shortest(options.repetitionPenalty));
  if (options.topK < 0)
    return io::invalid("expected top-k to be 0 or more, but got ", options.topK);
  return Sampler(options);
}

absl::StatusOr<std::vector<TokenProbability>> Sampler::distribution(absl::Span<const float> logits,
                                                                    absl::Span<const int32_t> history) const {
  HONE_ASSIGN_OR_RETURN(Candidates candidates, readLogits(logits));
  if (options.repetitionPenalty != 1)
    HONE_RETURN_IF_ERROR(penalize(candidates, history, options.repetitionPenalty));
  Candidate largest = *std::min_element(candidates.begin(), candidates.end(), isLarger);
  if (options.temperature == 0)
    return std::vector<TokenProbability>{{largest.id, 1}};
  keepLargest(candidates, options.topK);
  for (Candidate &candidate : candidates)
    candidate.weight = portableExp((candidate.logit - largest.logit) / options.temperature);
  keepProbable(candidates, options.topP);
  keepRelative(candidates, options.minP);
  std::sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) { return a.id < b.id; });
  double total = totalWeight(candidates);
  std::vector<TokenProbability> result;
  result.reserve(candidates.size());
  for (const Candidate &candidate : candidates)
    result.push_back({candidate.id, candidate.weight / total});
  return result;
}

absl::StatusOr<int32_t> Sampler::sample(absl::Span<const float> logits, absl::Span<const int32_t> history) {
  HONE_ASSIGN_OR_RETURN(std::vector<TokenProbability> tokens, distribution(logits, history));
  if (tokens.size() == 1)
    return tokens[0].id; // takes no number, so that greedy choices leave the generator alone
  double target = uniform(), sum = 0;
  int32_t last = tokens[0].id;
  for (TokenProbability token : tokens) {
    if (token.probability == 0)
      continue;
    last = token.id;
    sum += token.probability;
    if (sum > target)
      break;
  }
  return last;
}

double Sampler::uniform() {
  constexpr int kUnusedBits = 11;
  return static_cast<double>(generator() >> kUnusedBits) * 0x1p-53;
}

} // namespace hone::text
