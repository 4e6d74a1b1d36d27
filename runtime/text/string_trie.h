// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Strings by their beginnings.

#ifndef HONE_RUNTIME_TEXT_STRING_TRIE_H
#define HONE_RUNTIME_TEXT_STRING_TRIE_H

#include "absl/container/flat_hash_map.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hone::text {

/// A set of strings with a value each, 0 or more. Of equal strings the first counts; the empty string is left out.
class StringTrie {
public:
  void insert(std::string_view string, int32_t value);

  /// Calls `visit(length, value)` for every string that `text` has at `begin`, the shortest first.
  template <typename Visit>
  void forEachPrefix(std::string_view text, size_t begin, Visit visit) const {
    uint32_t node = 0;
    for (size_t end = begin; end < text.size(); ++end) {
      auto child = childOf(node, text[end]);
      if (!child)
        return;
      node = *child;
      if (nodes[node] != kNoValue)
        visit(end + 1 - begin, nodes[node]);
    }
  }

private:
  std::optional<uint32_t> childOf(uint32_t node, char byte) const;

  static constexpr int32_t kNoValue = -1;
  std::vector<int32_t> nodes = {kNoValue}; // the value that ends at a node; node 0 is the root
  absl::flat_hash_map<uint64_t, uint32_t> edges;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_STRING_TRIE_H
