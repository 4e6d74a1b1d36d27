// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Strings by their beginnings.

#include "text/string_trie.h"

namespace hone::text {

std::optional<uint32_t> StringTrie::childOf(uint32_t node, char byte) const {
  auto found = edges.find(static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte));
  return found == edges.end() ? std::nullopt : std::optional<uint32_t>(found->second);
}

void StringTrie::insert(std::string_view string, int32_t value) {
  if (string.empty())
    return;
  uint32_t node = 0;
  for (char byte : string) {
    uint64_t edge = static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
    auto [found, isNew] = edges.emplace(edge, static_cast<uint32_t>(nodes.size()));
    if (isNew)
      nodes.push_back(kNoValue);
    node = found->second;
  }
  if (nodes[node] == kNoValue)
    nodes[node] = value;
}

} // namespace hone::text
