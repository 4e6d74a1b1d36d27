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

Draft CombinedDrafter::draft(int64_t most) const {
  Draft best;
  for (size_t i = 0; i < drafters.size(); ++i) {
    Draft draft = drafters[i]->draft(most);
    if (draft.tokens.empty() || draft.matched <= best.matched)
      continue;
    best = std::move(draft);
    best.drafter = i;
  }
  return best;
}

} // namespace hone::speculate
