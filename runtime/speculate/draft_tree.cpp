// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes and their ancestors.

#include "speculate/draft_tree.h"

namespace hone::speculate {

bool DraftTree::isChain() const {
  for (int64_t node = 1; node <= size(); ++node)
    if (parentOf(node) != node - 1)
      return false;
  return true;
}

std::vector<int64_t> DraftTree::childrenOf(int64_t node) const {
  std::vector<int64_t> children;
  for (int64_t child = node + 1; child <= size(); ++child)
    if (parentOf(child) == node)
      children.push_back(child);
  return children;
}

int64_t DraftTree::add(int64_t parent, int64_t token) {
  tokens.push_back(token);
  parents.push_back(parent);
  return size();
}

DraftTree DraftTree::first(int64_t count) const {
  auto ofTokens = static_cast<std::ptrdiff_t>(count);
  return {{tokens.begin(), tokens.begin() + ofTokens},
          parents.empty() ? parents : std::vector(parents.begin(), parents.begin() + ofTokens)};
}

std::vector<int64_t> DraftTree::ancestorsAfter(int64_t pending) const {
  std::vector<uint64_t> words;
  for (int64_t i = 0; i < pending + size(); ++i) {
    int64_t node = i - (pending - 1), parent = node < 1 ? i - 1 : pending - 1 + parentOf(node);
    words.push_back((parent < 0 ? 0 : words[static_cast<size_t>(parent)]) | uint64_t{1} << i);
  }
  return {words.begin(), words.end()};
}

} // namespace hone::speculate
