// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draft tokens that share beginnings: what may follow a text, as a tree.

#ifndef HONE_RUNTIME_SPECULATE_DRAFT_TREE_H
#define HONE_RUNTIME_SPECULATE_DRAFT_TREE_H

#include <cstdint>
#include <span>
#include <vector>

namespace hone::speculate {

/// Most tokens that a call verifies as a tree, with those of the text that it feeds: the bits of a word.
constexpr int64_t kMostTreeTokens = 64;

/// Drafted tokens in topological order. Node 0 is the last token of the text, node i + 1 is tokens[i].
struct DraftTree {
  std::vector<int64_t> tokens;
  std::vector<int64_t> parents = {}; // by token: the node that it follows, at most i; empty for a chain

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  int64_t parentOf(int64_t node) const { return parents.empty() ? node - 1 : parents[static_cast<size_t>(node) - 1]; }
  int64_t tokenOf(int64_t node) const { return tokens[static_cast<size_t>(node) - 1]; }
  /// Whether each token follows the one before it.
  bool isChain() const;
  /// The nodes that follow a node, in their order.
  std::vector<int64_t> childrenOf(int64_t node) const;
  /// Adds a token; returns its node.
  int64_t add(int64_t parent, int64_t token);
  /// The first `count` tokens, which have their parents among them.
  DraftTree first(int64_t count) const;
  /// Of `pending` tokens of the text, the last of which is node 0, and of the drafted ones: bit j of element i is set iff token j is
  /// token i or comes before it. At most kMostTreeTokens in all.
  std::vector<int64_t> ancestorsAfter(int64_t pending) const;
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_DRAFT_TREE_H
