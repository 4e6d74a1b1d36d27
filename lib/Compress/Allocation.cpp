// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps down convex hulls, and then a search over sums that the relaxation bounds.

#include "hone/Compress/Allocation.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace hone::compress {
namespace {

using Candidates = std::span<const std::vector<Candidate>>;

/// Candidates of the lower convex hull, from the fewest bytes on: each next one loses less, and less for each byte than the one
/// before.
std::vector<size_t> findHull(const std::vector<Candidate> &candidates) {
  std::vector<size_t> order(candidates.size()), hull;
  std::iota(order.begin(), order.end(), 0);
  auto key = [&](size_t i) { return std::tuple(candidates[i].bytes, candidates[i].loss, i); };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  auto gain = [&](size_t from, size_t to) { // for each byte
    return (candidates[from].loss - candidates[to].loss) /
           static_cast<double>(candidates[to].bytes - candidates[from].bytes);
  };
  for (size_t next : order) {
    if (!hull.empty() && candidates[next].loss >= candidates[hull.back()].loss)
      continue;
    while (hull.size() > 1 && gain(hull[hull.size() - 2], hull.back()) <= gain(hull.back(), next))
      hull.pop_back();
    hull.push_back(next);
  }
  return hull;
}

/// From one candidate of a hull to the next.
struct Step {
  size_t weight, to;
  int64_t bytes;
  double gain, rate; // of loss, and that for each byte
};

/// All steps, the steepest first; of one weight they come in order.
std::vector<Step> listSteps(Candidates weights, const std::vector<std::vector<size_t>> &hulls) {
  std::vector<Step> steps;
  for (size_t weight = 0; weight < weights.size(); ++weight)
    for (size_t i = 1; i < hulls[weight].size(); ++i) {
      const Candidate &from = weights[weight][hulls[weight][i - 1]], &to = weights[weight][hulls[weight][i]];
      int64_t bytes = to.bytes - from.bytes;
      double gain = from.loss - to.loss;
      steps.push_back({weight, hulls[weight][i], bytes, gain, gain / static_cast<double>(bytes)});
    }
  auto key = [](const Step &step) { return std::tuple(-step.rate, step.weight); };
  std::sort(steps.begin(), steps.end(), [&](const Step &a, const Step &b) { return key(a) < key(b); });
  return steps;
}

/// A choice for the first weights.
struct State {
  int64_t bytes;
  double loss;
  uint32_t before, candidate; // the state that it extends, and by what
};

class Search {
public:
  Search(Candidates weights, int64_t budget, double rate, double worst)
      : weights(weights), budget(budget), rate(rate), worst(worst) {}

  /// Whether nothing was left out; `best` becomes what was found, if that is better than the worst.
  bool run(size_t mostStates, Allocation &best);

private:
  /// The least that weights from `first` on can add to a loss, in the relaxation: bytes cost `rate` beyond what is left.
  std::vector<double> boundRests() const;
  double bound(const State &state, double rest) const {
    return state.loss + rest - rate * static_cast<double>(budget - state.bytes);
  }
  std::vector<State> extend(size_t weight, double rest) const;
  void trace(Allocation &best) const;

  Candidates weights;
  int64_t budget;
  double rate, worst;
  std::vector<std::vector<State>> levels;
};

std::vector<double> Search::boundRests() const {
  std::vector<double> rests(weights.size() + 1);
  for (size_t weight = weights.size(); weight-- > 0;) {
    double least = std::numeric_limits<double>::infinity();
    for (const Candidate &candidate : weights[weight])
      least = std::min(least, candidate.loss + rate * static_cast<double>(candidate.bytes));
    rests[weight] = rests[weight + 1] + least;
  }
  return rests;
}

/// The states of the last level with each candidate of `weight`, but those that others dominate.
std::vector<State> Search::extend(size_t weight, double rest) const {
  std::vector<State> states;
  for (size_t i = 0; i < levels.back().size(); ++i)
    for (size_t j = 0; j < weights[weight].size(); ++j) {
      const State &from = levels.back()[i];
      const Candidate &by = weights[weight][j];
      State state{from.bytes + by.bytes, from.loss + by.loss, static_cast<uint32_t>(i), static_cast<uint32_t>(j)};
      if (state.bytes <= budget && bound(state, rest) <= worst)
        states.push_back(state);
    }
  auto key = [](const State &state) { return std::tuple(state.bytes, state.loss, state.before, state.candidate); };
  std::sort(states.begin(), states.end(), [&](const State &a, const State &b) { return key(a) < key(b); });
  size_t kept = 0;
  for (const State &state : states)
    if (kept == 0 || state.loss < states[kept - 1].loss)
      states[kept++] = state;
  states.resize(kept);
  return states;
}

bool Search::run(size_t mostStates, Allocation &best) {
  std::vector<double> rests = boundRests();
  levels.push_back({State{0, 0, 0, 0}});
  bool isWhole = true;
  for (size_t weight = 0; weight < weights.size(); ++weight) {
    std::vector<State> states = extend(weight, rests[weight + 1]);
    if (states.size() > mostStates) {
      isWhole = false;
      auto key = [&](const State &state) { return std::tuple(bound(state, rests[weight + 1]), state.bytes); };
      std::sort(states.begin(), states.end(), [&](const State &a, const State &b) { return key(a) < key(b); });
      states.resize(mostStates);
    }
    levels.push_back(std::move(states));
  }
  if (!levels.back().empty())
    trace(best);
  return isWhole;
}

void Search::trace(Allocation &best) const {
  const std::vector<State> &last = levels.back();
  auto least = std::min_element(last.begin(), last.end(), [](const State &a, const State &b) {
    return std::pair(a.loss, a.bytes) < std::pair(b.loss, b.bytes);
  });
  if (least->loss >= best.loss)
    return;
  best.loss = least->loss;
  best.bytes = least->bytes;
  const State *state = &*least;
  for (size_t weight = weights.size(); weight-- > 0;) {
    best.chosen[weight] = state->candidate;
    state = &levels[weight][state->before];
  }
}

} // namespace

absl::StatusOr<Allocation> allocate(Candidates weights, int64_t budget, size_t mostStates) {
  Allocation best;
  std::vector<std::vector<size_t>> hulls;
  for (const std::vector<Candidate> &candidates : weights) {
    if (candidates.empty())
      return io::invalid("expected a candidate for each weight");
    hulls.push_back(findHull(candidates));
    const Candidate &least = candidates[hulls.back().front()];
    best.chosen.push_back(hulls.back().front());
    best.bytes += least.bytes;
    best.loss += least.loss;
  }
  if (best.bytes > budget)
    return io::invalid("expected room for at least ", best.bytes, " bytes of weights, but got ", budget);
  double rate = 0; // of the first step that does not fit
  std::vector<bool> isStopped(weights.size());
  for (const Step &step : listSteps(weights, hulls)) {
    isStopped[step.weight] = isStopped[step.weight] || best.bytes + step.bytes > budget;
    if (isStopped[step.weight]) {
      rate = std::max(rate, step.rate);
      continue;
    }
    best.chosen[step.weight] = step.to;
    best.bytes += step.bytes;
    best.loss -= step.gain;
  }
  // Sums of gains are not to the last bit what sums of losses are.
  best.loss = 0;
  for (size_t weight = 0; weight < weights.size(); ++weight)
    best.loss += weights[weight][best.chosen[weight]].loss;
  best.isOptimal = Search(weights, budget, rate, best.loss * (1 + 1e-12)).run(mostStates, best);
  return best;
}

} // namespace hone::compress
