// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Occurrences of a set of strings in a text, in time that grows with the text and not with the strings.

#ifndef HONE_RUNTIME_TEXT_TOKEN_MATCHER_H
#define HONE_RUNTIME_TEXT_TOKEN_MATCHER_H

#include "absl/container/flat_hash_map.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace hone::text {

/// Strings with a value each, 0 or more. Of equal strings the first counts; the empty string is left out.
class TokenMatcher {
public:
  /// A string at `begin` of a text.
  struct Match {
    uint32_t begin, length;
    int32_t value;
  };

  void insert(std::string_view string, int32_t value);
  /// After the last string, before the first search.
  void finish();
  bool empty() const { return nodes.size() == 1; }

  /// For each position of `text` at which strings begin, the longest of them, from the last position to the first: the automaton of Aho
  /// and Corasick (1975) of the strings from right to left, of which a state's longest suffix is the longest beginning.
  std::vector<Match> matchBackwards(std::string_view text) const;

private:
  static constexpr int32_t kNoValue = -1;
  static constexpr uint32_t kRoot = 0;

  struct Node {
    uint32_t parent = kRoot, depth = 0;
    unsigned char byte = 0;
    int32_t value = kNoValue;
    uint32_t suffix = kRoot;   // the longest that is a node
    uint32_t terminal = kRoot; // this node or its longest suffix that has a value; the root where there is none
  };

  uint32_t childOf(uint32_t node, char byte) const;
  uint32_t next(uint32_t node, char byte) const;

  std::vector<Node> nodes = {Node()};
  absl::flat_hash_map<uint64_t, uint32_t> edges;
  std::array<bool, 256> ends = {}; // the last bytes of strings
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_TOKEN_MATCHER_H
