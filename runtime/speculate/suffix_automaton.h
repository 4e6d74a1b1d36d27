// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drafts from the text itself: the longest suffix that occurred before, and what followed it there (SAM-Decoding, Hu et al. 2025).

#ifndef HONE_RUNTIME_SPECULATE_SUFFIX_AUTOMATON_H
#define HONE_RUNTIME_SPECULATE_SUFFIX_AUTOMATON_H

#include "speculate/drafter.h"

#include "absl/container/flat_hash_map.h"

namespace hone::speculate {

/// The suffix automaton of a text (Blumer et al. 1985), which grows token by token in amortised constant time: at most 2 states and 3
/// transitions a token. With it goes the longest suffix of the text that also ends at an earlier position: the strings of the link of the whole
/// text's state are those suffixes that do.
class SuffixAutomaton {
public:
  SuffixAutomaton();

  void append(int64_t token);

  std::span<const int64_t> text() const { return tokens; }
  /// Length of the longest suffix of the text that ends at an earlier position too; occurrences may overlap.
  int64_t matchedLength() const { return match().length; }
  /// The position after its first occurrence; 0 where nothing matches.
  int64_t matchedEnd() const { return match().firstEnd; }
  /// What followed the matched suffix and those tokens, as a tree. Of a place the likeliest are taken of those that followed it last.
  Draft growMatch(int64_t most) const;
  size_t countStates() const { return states.size(); }
  size_t countTransitions() const { return edges.size(); }
  /// How many suffix links and transitions were followed so far.
  int64_t countSteps() const { return steps; }

private:
  static constexpr int32_t kNone = -1, kRoot = 0;

  struct State {
    int32_t link;
    int32_t length;   // of its longest string
    int32_t firstEnd; // where its strings end first
    int32_t lastEdge; // the head of the list of its transitions
  };
  struct Edge {
    int64_t token;
    int32_t target, next; // the next transition of the same state
    int32_t count; // how often the text went on by it from what was the longest match then, and once for its first time
  };
  struct Key {
    int64_t token;
    int32_t state;

    bool operator==(const Key &) const = default;
    template <typename Hash> friend Hash AbslHashValue(Hash hash, const Key &key) {
      return Hash::combine(std::move(hash), key.token, key.state);
    }
  };

  int32_t matchState() const {
    int32_t link = states[static_cast<size_t>(last)].link;
    return link == kNone ? kRoot : link;
  }
  const State &match() const { return states[static_cast<size_t>(matchState())]; }
  /// The transition of a state, or null.
  Edge *find(int32_t state, int64_t token);
  void connect(int32_t from, int64_t token, int32_t to, int32_t count = 1);
  int32_t split(int32_t parent, int64_t token, int32_t target);

  std::vector<int64_t> tokens;
  std::vector<State> states;
  std::vector<Edge> edges;
  absl::flat_hash_map<Key, int32_t> edgeOf;
  int32_t last = kRoot; // the state of the whole text
  int64_t steps = 0;
};

/// Drafts from the suffix automaton of the text and of those before it. Once they have `mostTokens` in all, the older half is forgotten,
/// which takes as long as appending the other half again.
class AutomatonDrafter : public Drafter {
public:
  /// On source text of about 170 bytes each.
  static constexpr size_t kMostTokens = size_t{1} << 20;

  explicit AutomatonDrafter(size_t mostTokens = kMostTokens) : mostTokens(mostTokens) {}

  void beginText() override;
  void append(std::span<const int64_t> tokens) override;
  Draft draft(int64_t most) const override;
  Draft draftTree(int64_t most) const override;
  size_t countTokens() const { return automaton.text().size(); }

private:
  void forgetOlderHalf();

  size_t mostTokens;
  SuffixAutomaton automaton;
  // Each occurs once, so that no match reaches across it.
  int64_t nextSeparator = -1;
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_SUFFIX_AUTOMATON_H
