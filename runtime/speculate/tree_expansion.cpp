// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expansion and ranking.

#include "speculate/tree_expansion.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hone::speculate {

int64_t TreeShape::countFixed(int64_t most) const {
  int64_t count = 0, ofDepth = 1;
  for (int64_t each : fixed) {
    ofDepth = each > most ? most + 1 : std::min(ofDepth * each, most + 1);
    count = std::min(count + ofDepth, most + 1);
  }
  return count;
}

void TreeShape::limit(int64_t most) {
  depth = std::min(depth, most);
  fixed.resize(std::min(fixed.size(), static_cast<size_t>(most)));
}

int64_t TreeExpansion::branches() const {
  if (depths >= shape.depths())
    return 0;
  return shape.fixed.empty() ? shape.branches : shape.fixed[static_cast<size_t>(depths)];
}

void TreeExpansion::expand(int64_t node, std::span<const LikelyToken> likeliest, double entropy) {
  double ofPath = node == 0 ? 1 : at(node).joint;
  for (const LikelyToken &likely : likeliest) {
    TreeCandidate candidate = {likely.token, node, depths + 1, likely.probability, ofPath * likely.probability,
                               entropy};
    if (pruner && !pruner->keeps(candidate))
      continue;
    candidates.push_back(candidate);
    found.push_back(size());
  }
}

void TreeExpansion::advance() {
  ++depths;
  open = std::exchange(found, {});
  if (branches() == 0)
    return open.clear();
  if (!shape.fixed.empty() || std::ssize(open) <= shape.branches)
    return;
  std::ranges::sort(open, [this](int64_t a, int64_t b) { return isBefore(a, b); });
  open.resize(static_cast<size_t>(shape.branches));
  std::ranges::sort(open);
}

std::vector<int64_t> TreeExpansion::listPaths() const {
  std::vector<int64_t> nodes;
  for (int64_t node : open)
    for (; node != 0; node = at(node).parent)
      nodes.push_back(node);
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

bool TreeExpansion::isBefore(int64_t a, int64_t b) const {
  const TreeCandidate &first = at(a), &second = at(b);
  if (first.joint != second.joint)
    return first.joint > second.joint;
  return first.depth != second.depth ? first.depth < second.depth : a < b;
}

Draft TreeExpansion::rank() const {
  std::vector<int64_t> order(candidates.size());
  std::iota(order.begin(), order.end(), 1);
  std::ranges::sort(order, [this](int64_t a, int64_t b) { return isBefore(a, b); });
  Draft draft = {treeOf(*this, order), 1};
  for (int64_t node : order)
    draft.shares.push_back(at(node).probability);
  return draft;
}

DraftTree treeOf(const TreeExpansion &expansion, std::span<const int64_t> nodes) {
  std::vector<int64_t> places(static_cast<size_t>(expansion.size()) + 1); // by node
  DraftTree tree;
  for (int64_t node : nodes) {
    const TreeCandidate &candidate = expansion.at(node);
    places[static_cast<size_t>(node)] = tree.add(places[static_cast<size_t>(candidate.parent)], candidate.token);
  }
  return tree;
}

} // namespace hone::speculate
