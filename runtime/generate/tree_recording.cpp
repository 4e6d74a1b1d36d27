// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trees beside what the text went on with.

#include "generate/tree_recording.h"

#include "generate/model_drafter.h"

namespace hone::rt {
namespace {

/// The candidates of a tree after which the text goes on with `rest`, and how many of them it went on with.
speculate::RecordedTree label(const speculate::TreeExpansion &expansion, std::span<const int64_t> rest,
                              int64_t &accepted) {
  speculate::RecordedTree tree;
  std::vector<bool> isAccepted = {true}; // by node
  for (int64_t node = 1; node <= expansion.size(); ++node) {
    const speculate::TreeCandidate &candidate = expansion.at(node);
    bool isRight = isAccepted[static_cast<size_t>(candidate.parent)] && candidate.depth <= std::ssize(rest) &&
                   rest[static_cast<size_t>(candidate.depth) - 1] == candidate.token;
    isAccepted.push_back(isRight);
    tree.push_back({speculate::featuresOf(candidate), isRight});
    if (isRight)
      accepted = std::max(accepted, candidate.depth);
  }
  return tree;
}

} // namespace

absl::Status recordTrees(LanguageModel &draft, std::span<const int64_t> prompt, std::span<const int64_t> written,
                         const speculate::TreeShape &shape, std::vector<speculate::RecordedTree> &trees) {
  speculate::DrafterTimes times;
  ModelDrafter drafter(draft, prompt, /*confidence=*/0, times);
  for (size_t fed = 0, next = 1; next < written.size();) {
    drafter.append(written.subspan(fed, next - fed));
    fed = next;
    // Of what lies beyond the end of the text nobody knows whether it would have been accepted.
    speculate::TreeShape known = shape;
    known.limit(std::ssize(written) - static_cast<int64_t>(fed));
    speculate::TreeExpansion expansion(known, nullptr);
    HONE_RETURN_IF_ERROR(drafter.draftTree(expansion));
    int64_t accepted = 0;
    trees.push_back(label(expansion, written.subspan(fed), accepted));
    next = fed + static_cast<size_t>(accepted) + 1;
  }
  return absl::OkStatus();
}

} // namespace hone::rt
