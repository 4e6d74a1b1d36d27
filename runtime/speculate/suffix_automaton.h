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
/// transitions a token. With it goes the longest suffix of the text that also ends at an earlier position.
class SuffixAutomaton {
public:
  SuffixAutomaton();

  /// First follows the token in what came before it, and then adds it.
  void append(int64_t token);

  std::span<const int64_t> text() const { return tokens; }
  /// Length of the longest suffix of the text that ends at an earlier position too; occurrences may overlap.
  int64_t matchedLength() const { return length; }
  /// The position after its first occurrence; 0 where nothing matches.
  int64_t matchedEnd() const { return states[match].firstEnd; }
  size_t countStates() const { return states.size(); }
  size_t countTransitions() const { return edges.size(); }

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
  };
  struct Key {
    int64_t token;
    int32_t state;

    bool operator==(const Key &) const = default;
    template <typename Hash> friend Hash AbslHashValue(Hash hash, const Key &key) {
      return Hash::combine(std::move(hash), key.token, key.state);
    }
  };

  /// The transition of a state, or null.
  Edge *find(int32_t state, int64_t token);
  void connect(int32_t from, int64_t token, int32_t to);
  void follow(int64_t token);
  void add(int64_t token);
  int32_t split(int32_t parent, int64_t token, int32_t target);

  std::vector<int64_t> tokens;
  std::vector<State> states;
  std::vector<Edge> edges;
  absl::flat_hash_map<Key, int32_t> edgeOf;
  int32_t last = kRoot;              // the state of the whole text
  int32_t match = kRoot, length = 0; // the state of the matched suffix, and its length
};

/// Drafts from a text's own suffix automaton.
class AutomatonDrafter : public Drafter {
public:
  void append(std::span<const int64_t> tokens) override;
  Draft draft(int64_t most) const override;

private:
  SuffixAutomaton automaton;
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_SUFFIX_AUTOMATON_H
