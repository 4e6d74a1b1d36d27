// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prompt lookup.

#include "speculate/lookup.h"

#include <algorithm>

namespace hone::speculate {

void LookupDrafter::beginText() {
  text.clear();
  endOf.clear();
  matchedEnd = 0;
}

void LookupDrafter::append(std::span<const int64_t> tokens) {
  for (int64_t token : tokens) {
    text.push_back(token);
    if (text.size() < kTokens)
      continue;
    Ngram last;
    std::copy(text.end() - kTokens, text.end(), last.begin());
    auto [place, isNew] = endOf.emplace(last, text.size());
    matchedEnd = isNew ? 0 : place->second;
  }
}

Draft LookupDrafter::draft(int64_t most) const {
  if (matchedEnd == 0)
    return {};
  std::span<const int64_t> rest = std::span(text).subspan(matchedEnd);
  rest = rest.first(std::min(rest.size(), static_cast<size_t>(std::max<int64_t>(most, 0))));
  return {{{rest.begin(), rest.end()}}, static_cast<int64_t>(kTokens)};
}

} // namespace hone::speculate
