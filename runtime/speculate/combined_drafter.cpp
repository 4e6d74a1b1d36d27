// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The longest match.

#include "speculate/combined_drafter.h"

namespace hone::speculate {

void CombinedDrafter::beginText() {
  for (const std::unique_ptr<Drafter> &drafter : drafters)
    drafter->beginText();
}

void CombinedDrafter::append(std::span<const int64_t> tokens) {
  for (const std::unique_ptr<Drafter> &drafter : drafters)
    drafter->append(tokens);
}

template <typename Propose> Draft CombinedDrafter::chooseLongest(Propose propose) const {
  Draft best;
  for (size_t i = 0; i < drafters.size(); ++i) {
    Draft draft = propose(*drafters[i]);
    if (draft.tokens.empty() || draft.matched <= best.matched)
      continue;
    best = std::move(draft);
    best.drafter = i;
  }
  return best;
}

Draft CombinedDrafter::draft(int64_t most) const {
  return chooseLongest([most](const Drafter &each) { return each.draft(most); });
}

Draft CombinedDrafter::draftTree(int64_t most) const {
  return chooseLongest([most](const Drafter &each) { return each.draftTree(most); });
}

} // namespace hone::speculate
