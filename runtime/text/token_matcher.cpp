// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A trie of the strings from right to left, with links to suffixes.

#include "text/token_matcher.h"

#include <algorithm>
#include <numeric>

namespace hone::text {

static uint64_t keyOf(uint32_t node, char byte) {
  return static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
}

/// The root where there is none.
uint32_t TokenMatcher::childOf(uint32_t node, char byte) const {
  auto found = edges.find(keyOf(node, byte));
  return found == edges.end() ? kRoot : found->second;
}

/// The longest suffix of the node and the byte after it that is a node.
uint32_t TokenMatcher::next(uint32_t node, char byte) const {
  uint32_t child = childOf(node, byte);
  while (child == kRoot && node != kRoot) {
    node = nodes[node].suffix;
    child = childOf(node, byte);
  }
  return child;
}

void TokenMatcher::insert(std::string_view string, int32_t value) {
  if (string.empty())
    return;
  ends[static_cast<unsigned char>(string.back())] = true;
  uint32_t node = kRoot;
  for (size_t i = string.size(); i-- > 0;) {
    auto [found, isNew] = edges.emplace(keyOf(node, string[i]), static_cast<uint32_t>(nodes.size()));
    if (isNew)
      nodes.push_back({.parent = node, .depth = nodes[node].depth + 1, .byte = static_cast<unsigned char>(string[i])});
    node = found->second;
  }
  if (nodes[node].value == kNoValue)
    nodes[node].value = value;
}

void TokenMatcher::finish() {
  std::vector<uint32_t> order(nodes.size());
  std::iota(order.begin(), order.end(), kRoot);
  std::ranges::stable_sort(order, {}, [&](uint32_t node) { return nodes[node].depth; });
  for (uint32_t number : order) {
    Node &node = nodes[number];
    if (node.depth > 1)
      node.suffix = next(nodes[node.parent].suffix, static_cast<char>(node.byte));
    node.terminal = node.value != kNoValue ? number : nodes[node.suffix].terminal;
  }
}

std::vector<TokenMatcher::Match> TokenMatcher::matchBackwards(std::string_view text) const {
  std::vector<Match> matches;
  uint32_t node = kRoot;
  for (size_t begin = text.size(); begin-- > 0;) {
    if (node == kRoot && !ends[static_cast<unsigned char>(text[begin])])
      continue;
    node = next(node, text[begin]);
    if (uint32_t longest = nodes[node].terminal; longest != kRoot)
      matches.push_back({static_cast<uint32_t>(begin), nodes[longest].depth, nodes[longest].value});
  }
  return matches;
}

} // namespace hone::text
