// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draft trees of what gives probabilities: they grow by depth, and the best of all tokens that were seen are verified (EAGLE-2, Li et al. 2024,
// §4), or have a shape that is fixed beforehand.

#ifndef HONE_RUNTIME_SPECULATE_TREE_EXPANSION_H
#define HONE_RUNTIME_SPECULATE_TREE_EXPANSION_H

#include "speculate/drafter.h"

namespace hone::speculate {

/// What may follow a token.
struct LikelyToken {
  int64_t token;
  double probability;
};

/// A token that follows another of the tree.
struct TreeCandidate {
  int64_t token, parent;     // `parent` is a node: 0 is the last token of the text
  int64_t depth;             // 1 for what follows the text
  double probability, joint; // given its parent, and of its whole path
  double entropy;            // of what follows its parent, in nats
};

/// Says which tokens a tree is better without.
class TreePruner {
public:
  virtual ~TreePruner() = default;
  virtual bool keeps(const TreeCandidate &candidate) const = 0;
};

struct TreeShape {
  int64_t branches = 4; // most tokens that follow one, and most of a depth that others follow
  int64_t depth = 6;
  /// By depth, how many tokens follow each; all are followed. Empty where probabilities decide.
  std::vector<int64_t> fixed = {};

  /// Tokens of a tree of the fixed shape, or more than `most` where it has more.
  int64_t countFixed(int64_t most) const;
  /// The greatest depth.
  int64_t depths() const { return fixed.empty() ? depth : static_cast<int64_t>(fixed.size()); }
  /// Makes that at most `most`.
  void limit(int64_t most);
};

/// A tree as it grows. Of each depth the most probable paths go on; what does not is a token of the tree all the same.
class TreeExpansion {
public:
  /// `pruner` outlives it, or is null.
  TreeExpansion(TreeShape shape, const TreePruner *pruner) : shape(std::move(shape)), pruner(pruner) {}

  /// The nodes that are to be followed next, none at the end: at first node 0.
  const std::vector<int64_t> &frontier() const { return open; }
  /// How many tokens are to follow each of them.
  int64_t branches() const;
  /// What follows a node of the frontier, by descending probability; `entropy` is that of all that may.
  void expand(int64_t node, std::span<const LikelyToken> likeliest, double entropy);
  /// After the whole frontier.
  void advance();

  int64_t depth() const { return depths; }
  int64_t size() const { return static_cast<int64_t>(candidates.size()); }
  /// Of node 1 and those after it.
  const TreeCandidate &at(int64_t node) const { return candidates[static_cast<size_t>(node) - 1]; }
  /// The frontier and what it comes after, but node 0; parents before what follows them.
  std::vector<int64_t> listPaths() const;
  /// All tokens by descending probability of their paths, of equal ones those of lesser depth first: each comes after its parent, and however
  /// many are the first ones, no others are likelier.
  Draft rank() const;

private:
  bool isBefore(int64_t a, int64_t b) const; // in rank()

  TreeShape shape;
  const TreePruner *pruner;
  std::vector<int64_t> open = {0}, found; // nodes: to be followed, and of the next depth
  int64_t depths = 0;
  std::vector<TreeCandidate> candidates;
};

/// Nodes of a tree that stand for themselves, by their places among `nodes`: a tree in which node 0 is what they come after.
DraftTree treeOf(const TreeExpansion &expansion, std::span<const int64_t> nodes);

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_TREE_EXPANSION_H
