// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transitions are in one hash table, those of a state in a list: a vocabulary is too large for an array of each state.

#include "speculate/suffix_automaton.h"

#include "speculate/tree_growth.h"

#include <algorithm>

namespace hone::speculate {

namespace {
constexpr size_t kMostSeen = 64;    // transitions of a state that are looked at for a tree
constexpr size_t kMostBranches = 8; // tokens of a tree that follow one
} // namespace

SuffixAutomaton::SuffixAutomaton() { states.push_back({kNone, 0, 0, kNone}); }

SuffixAutomaton::Edge *SuffixAutomaton::find(int32_t state, int64_t token) {
  auto found = edgeOf.find(Key{token, state});
  return found == edgeOf.end() ? nullptr : &edges[static_cast<size_t>(found->second)];
}

void SuffixAutomaton::connect(int32_t from, int64_t token, int32_t to, int32_t count) {
  State &state = states[static_cast<size_t>(from)];
  auto edge = static_cast<int32_t>(edges.size());
  edges.push_back({token, to, state.lastEdge, count});
  edgeOf.emplace(Key{token, from}, edge);
  state.lastEdge = edge;
}

void SuffixAutomaton::append(int64_t token) {
  if (Edge *taken = find(matchState(), token))
    ++taken->count;
  tokens.push_back(token);
  auto end = static_cast<int32_t>(tokens.size()), whole = static_cast<int32_t>(states.size());
  states.push_back({kRoot, end, end, kNone});
  int32_t parent = std::exchange(last, whole);
  Edge *edge = nullptr;
  for (; parent != kNone; parent = states[static_cast<size_t>(parent)].link, ++steps) {
    edge = find(parent, token);
    if (edge)
      break;
    connect(parent, token, whole);
  }
  if (parent == kNone)
    return;
  bool isOneLonger = states[static_cast<size_t>(edge->target)].length == states[static_cast<size_t>(parent)].length + 1;
  states[static_cast<size_t>(whole)].link = isOneLonger ? edge->target : split(parent, token, edge->target);
}

/// Makes a state of those strings of `target` that are no longer than `parent` and the token, with the transitions of `target`.
int32_t SuffixAutomaton::split(int32_t parent, int64_t token, int32_t target) {
  auto copy = static_cast<int32_t>(states.size());
  State &whole = states[static_cast<size_t>(target)];
  State shorter = {whole.link, states[static_cast<size_t>(parent)].length + 1, whole.firstEnd, kNone};
  whole.link = copy;
  int32_t edge = whole.lastEdge;
  states.push_back(shorter);
  for (; edge != kNone; edge = edges[static_cast<size_t>(edge)].next) {
    Edge of = edges[static_cast<size_t>(edge)];
    connect(copy, of.token, of.target, of.count);
  }
  for (; parent != kNone; parent = states[static_cast<size_t>(parent)].link, ++steps) {
    Edge *redirected = find(parent, token);
    if (!redirected || redirected->target != target)
      break;
    redirected->target = copy;
  }
  return copy;
}

Draft SuffixAutomaton::growMatch(int64_t most) const {
  auto expand = [this](int32_t state) {
    std::vector<const Edge *> seen;
    double all = 0;
    int32_t edge = states[static_cast<size_t>(state)].lastEdge;
    for (; edge != kNone && seen.size() < kMostSeen; edge = edges[static_cast<size_t>(edge)].next) {
      seen.push_back(&edges[static_cast<size_t>(edge)]);
      all += seen.back()->count;
    }
    std::ranges::sort(seen,
                      [](const Edge *a, const Edge *b) { return a->count != b->count ? a->count > b->count : a > b; });
    std::vector<Continuation<int32_t>> found;
    for (const Edge *each : std::span(seen).first(std::min(seen.size(), kMostBranches)))
      if (each->token >= 0) // no separator
        found.push_back({each->token, each->count / all, each->target});
    return found;
  };
  return growTree(matchedLength() > 0 ? most : 0, matchState(), expand);
}

void AutomatonDrafter::beginText() {
  if (!automaton.text().empty())
    automaton.append(nextSeparator--);
}

void AutomatonDrafter::append(std::span<const int64_t> tokens) {
  for (int64_t token : tokens) {
    if (automaton.text().size() >= mostTokens)
      forgetOlderHalf();
    automaton.append(token);
  }
}

void AutomatonDrafter::forgetOlderHalf() {
  SuffixAutomaton newer;
  for (int64_t token : automaton.text().subspan(automaton.text().size() - automaton.text().size() / 2))
    newer.append(token);
  automaton = std::move(newer);
}

Draft AutomatonDrafter::draft(int64_t most) const {
  if (automaton.matchedLength() == 0)
    return {};
  std::span<const int64_t> rest = automaton.text().subspan(static_cast<size_t>(automaton.matchedEnd()));
  rest = rest.first(std::min(rest.size(), static_cast<size_t>(std::max<int64_t>(most, 0))));
  auto isSeparator = [](int64_t token) { return token < 0; };
  return {{{rest.begin(), std::ranges::find_if(rest, isSeparator)}}, automaton.matchedLength()};
}

Draft AutomatonDrafter::draftTree(int64_t most) const {
  Draft draft = automaton.growMatch(most);
  draft.matched = automaton.matchedLength();
  return draft;
}

} // namespace hone::speculate
