// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sampling. Built without contraction of floating-point operations (see CMakeLists.txt), in double precision.

#include "hone/sampling/sampler.h"

#include "hone/sampling/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hone::sampling {

namespace {

struct Candidate {
  int32_t id;
  double logit;
  uint64_t weight; // weightOf() of arithmetic.h
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

Candidates listCandidates(absl::Span<const float> logits) {
  Candidates candidates;
  candidates.reserve(logits.size());
  for (float logit : logits)
    candidates.push_back({static_cast<int32_t>(candidates.size()), logit, 0});
  return candidates;
}

void penalize(Candidates &candidates, absl::Span<const int32_t> history, double penalty) {
  std::vector<bool> isDone(candidates.size());
  for (int32_t id : history) {
    if (isDone[id])
      continue;
    isDone[id] = true;
    double &logit = candidates[id].logit;
    logit = penalized(logit, penalty);
  }
}

void keepLargest(Candidates &candidates, int64_t count) {
  if (count == 0 || static_cast<size_t>(count) >= candidates.size())
    return;
  std::nth_element(candidates.begin(), candidates.begin() + count, candidates.end(), isLarger);
  candidates.resize(count);
}

uint64_t totalWeight(const Candidates &candidates) {
  uint64_t total = 0;
  for (const Candidate &candidate : candidates)
    total += candidate.weight;
  return total;
}

/// Sorts no more of the candidates than it keeps, within a factor.
void keepProbable(Candidates &candidates, double topP) {
  if (topP >= 1)
    return;
  constexpr size_t kFirstSorted = 64, kGrowth = 4;
  uint64_t target = std::max<uint64_t>(shareOf(totalWeight(candidates), topP), 1), sum = 0;
  size_t sorted = 0, kept = 0;
  while (sum < target) {
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

/// `largest` is the weight of the most probable.
void keepRelative(Candidates &candidates, uint64_t largest, double minP) {
  if (minP > 0)
    std::erase_if(candidates,
                  [least = shareOf(largest, minP)](const Candidate &candidate) { return candidate.weight < least; });
}

/// The tokens that are kept, by id.
absl::StatusOr<Candidates> choose(absl::Span<const float> logits, absl::Span<const int32_t> history,
                                  const SamplingOptions &options) {
  HONE_ASSIGN_OR_RETURN(int32_t first, findLargest(logits));
  Candidate largest = {first, logits[static_cast<size_t>(first)], 0};
  Candidates candidates;
  if (options.temperature != 0 || options.repetitionPenalty != 1)
    candidates = listCandidates(logits);
  if (options.repetitionPenalty != 1) {
    HONE_RETURN_IF_ERROR(checkHistory(history, static_cast<int64_t>(logits.size())));
    penalize(candidates, history, options.repetitionPenalty);
    largest = *std::min_element(candidates.begin(), candidates.end(), isLarger);
  }
  int bits = weightBits(static_cast<int64_t>(logits.size()));
  largest.weight = uint64_t{1} << bits;
  if (options.temperature == 0)
    return Candidates{largest};
  keepLargest(candidates, options.topK);
  for (Candidate &candidate : candidates)
    candidate.weight = weightOf(candidate.logit, largest.logit, options.temperature, bits);
  keepProbable(candidates, options.topP);
  keepRelative(candidates, largest.weight, options.minP);
  std::sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) { return a.id < b.id; });
  return candidates;
}

} // namespace

absl::Status badLogits(int64_t code, int64_t vocabulary) {
  if (code == kNoFiniteLogit)
    return io::invalid("cannot sample a token: none of ", vocabulary, " logits is above minus infinity");
  int64_t number = -2 - code; // badLogitCode
  return io::invalid("cannot sample a token: the logit of token ", number / 2, " of ", vocabulary, " is ",
                     number % 2 ? "infinite" : "not a number");
}

absl::StatusOr<int32_t> findLargest(absl::Span<const float> logits) {
  auto count = static_cast<int64_t>(logits.size()), largest = int64_t{-1};
  for (int64_t id = 0; id < count; ++id) {
    float logit = logits[id];
    if (!(logit < INFINITY))
      return badLogits(badLogitCode(id, logit == INFINITY), count);
    if (logit > (largest < 0 ? -INFINITY : logits[largest]))
      largest = id;
  }
  if (largest < 0)
    return badLogits(kNoFiniteLogit, count);
  return static_cast<int32_t>(largest);
}

absl::Status checkHistory(absl::Span<const int32_t> history, int64_t vocabulary) {
  auto wrong = std::find_if(history.begin(), history.end(), [=](int32_t id) { return id < 0 || id >= vocabulary; });
  if (wrong == history.end())
    return absl::OkStatus();
  return io::invalid("cannot sample a token: the history holds token ", *wrong, ", but there are ", vocabulary,
                     " logits");
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
  HONE_ASSIGN_OR_RETURN(Candidates candidates, choose(logits, history, options));
  auto total = static_cast<double>(totalWeight(candidates));
  std::vector<TokenProbability> result;
  result.reserve(candidates.size());
  for (const Candidate &candidate : candidates)
    result.push_back({candidate.id, static_cast<double>(candidate.weight) / total});
  return result;
}

absl::StatusOr<int32_t> Sampler::sample(absl::Span<const float> logits, absl::Span<const int32_t> history) {
  HONE_ASSIGN_OR_RETURN(Candidates candidates, choose(logits, history, options));
  uint64_t place = options.temperature == 0 ? 0 : placeOf(draw(), totalWeight(candidates));
  auto chosen = candidates.begin();
  for (; place >= chosen->weight; ++chosen) // which the last is not, as the place is below the sum
    place -= chosen->weight;
  return chosen->id;
}

} // namespace hone::sampling
