// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moving averages of times and of acceptance.

#include "speculate/draft_width.h"

#include <algorithm>
#include <bit>

namespace hone::speculate {
namespace {

constexpr double kNewTime = 0.25;   // the share of a new time in the average
constexpr double kForgotten = 0.98; // what is left of older counts with each draft
constexpr double kLeastGain = 1.05; // by which a draft has to be better than none
constexpr double kLossShare = 0.01; // of all time, that drafts may lose
constexpr double kPrior = 2; // how many tokens of a class that were not seen the acceptance of all classes counts for
constexpr double kDoubted = 0.99; // what is left of the time of a width that was not tried, so that it is tried again

/// 0 … count - 1 for 0, 1, 2 … 3, 4 … 7, …
size_t classOf(int64_t number, size_t count) {
  return std::min(static_cast<size_t>(std::bit_width(static_cast<uint64_t>(number))), count - 1);
}

double shareOf(const Draft &draft, int64_t node) {
  return draft.shares.empty() ? 1 : draft.shares[static_cast<size_t>(node) - 1];
}

} // namespace

double DraftWidth::expectedSeconds(int64_t rows) const {
  // Weights are read once, whatever the rows are: of a width that was not tried it is only known that it takes no less than narrower ones.
  double longest = 0;
  for (size_t i = 0; i <= classOf(rows - 1, kRowClasses); ++i)
    longest = std::max(longest, seconds[i] * trust[i]);
  return longest > 0 ? longest : 1;
}

int64_t DraftWidth::choose(const Draft &draft, int64_t available, double secondsPerDraft) const {
  available = std::min({available, largest, reach});
  bool isKnown = seconds[0] > 0, mayLose = lost <= seconds[0] + kLossShare * total;
  if (available <= 0 || draft.matched <= 0 || !isKnown || !mayLose)
    return 0;
  double acceptance = acceptanceOf(draft.drafter, draft.matched), expected = 1;
  double bestRate = kLeastGain / expectedSeconds(1);
  std::vector<double> likely = {1}; // by node
  int64_t best = 0;
  for (int64_t n = 1; n <= available; ++n) {
    double ofParent = likely[static_cast<size_t>(draft.parentOf(n))];
    likely.push_back(ofParent * std::min(acceptance * shareOf(draft, n), 1.0));
    expected += likely.back();
    double rate = expected / (expectedSeconds(n + 1) + static_cast<double>(n) * secondsPerDraft);
    if (rate > bestRate) {
      bestRate = rate;
      best = n;
    }
  }
  return best;
}

void DraftWidth::Acceptance::count(int64_t newlyAccepted, double newlyTried) {
  accepted = accepted * kForgotten + static_cast<double>(newlyAccepted);
  tried = tried * kForgotten + newlyTried;
}

void DraftWidth::count(const Draft &draft, int64_t accepted, double tried) {
  if (draft.matched <= 0)
    return;
  DrafterAcceptance &of = drafters[draft.drafter];
  of.classes[classOf(draft.matched, kMatchClasses)].count(accepted, tried);
  of.all.count(accepted, tried);
}

double DraftWidth::acceptanceOf(size_t drafter, int64_t matched) const {
  const Acceptance &all = drafters[drafter].all, &of = drafters[drafter].classes[classOf(matched, kMatchClasses)];
  return (of.accepted + kPrior * all.accepted / all.tried) / (of.tried + kPrior);
}

void DraftWidth::record(const Draft &draft, int64_t verified, std::span<const int64_t> path, double time,
                        double secondsPerDraft) {
  double drafting = static_cast<double>(verified) * secondsPerDraft;
  total += time + drafting;
  if (verified > 0 && seconds[0] > 0)
    lost += time + drafting - static_cast<double>(path.size() + 1) * seconds[0];
  reach = std::max(reach, 2 * verified);
  double &known = seconds[classOf(verified, kRowClasses)];
  known = known > 0 ? known + kNewTime * (time - known) : time;
  for (double &other : std::span(trust).subspan<1>())
    other *= kDoubted;
  trust[classOf(verified, kRowClasses)] = 1;
  // Nothing is known of what follows a token that was refused, nor of a draft that was not looked at.
  if (verified == 0)
    return;
  double tried = 0;
  for (int64_t node = 1; node <= verified; ++node)
    if (int64_t parent = draft.parentOf(node); parent == 0 || std::ranges::count(path, parent) > 0)
      tried += shareOf(draft, node);
  count(draft, static_cast<int64_t>(path.size()), tried);
}

void DraftWidth::observe(const Draft &draft, int64_t token) {
  double tried = 0;
  int64_t accepted = 0;
  for (int64_t node : draft.childrenOf(0)) {
    tried += shareOf(draft, node);
    accepted |= draft.tokenOf(node) == token;
  }
  if (tried > 0)
    count(draft, accepted, tried);
}

} // namespace hone::speculate
