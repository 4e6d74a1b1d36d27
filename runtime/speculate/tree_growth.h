// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draft trees from what a drafter has seen: the token whose whole path was seen most often comes next (the static tree of SAM-Decoding, Hu et al.
// 2025, §3.3).

#ifndef HONE_RUNTIME_SPECULATE_TREE_GROWTH_H
#define HONE_RUNTIME_SPECULATE_TREE_GROWTH_H

#include "speculate/drafter.h"

#include <queue>

namespace hone::speculate {

/// A token that followed a place, of what followed it the share that was the token, and the place after it.
template <typename Place> struct Continuation {
  int64_t token;
  double share;
  Place place;
};

/// At most `most` tokens after `root`, by descending products of shares along their paths, of equal ones the one that was found first.
/// `expand` gives the continuations of a place.
template <typename Place, typename Expand> Draft growTree(int64_t most, Place root, Expand expand) {
  struct Candidate {
    double product;
    int64_t order, parent;
    Continuation<Place> found;

    bool operator<(const Candidate &other) const {
      return product != other.product ? product < other.product : order > other.order;
    }
  };
  std::priority_queue<Candidate> candidates;
  Draft draft;
  int64_t order = 0;
  auto extend = [&](int64_t node, double product, const Place &place) {
    for (Continuation<Place> &found : expand(place))
      candidates.push({product * found.share, order++, node, std::move(found)});
  };
  if (most > 0)
    extend(0, 1, root);
  while (!candidates.empty() && draft.size() < most) {
    Candidate best = candidates.top();
    candidates.pop();
    int64_t node = draft.add(best.parent, best.found.token);
    draft.shares.push_back(best.found.share);
    extend(node, best.product, best.found.place);
  }
  return draft;
}

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_TREE_GROWTH_H
