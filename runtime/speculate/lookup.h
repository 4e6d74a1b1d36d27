// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drafts by prompt lookup (Saxena 2023): what followed the last few tokens where they came first. The baseline of other drafters.

#ifndef HONE_RUNTIME_SPECULATE_LOOKUP_H
#define HONE_RUNTIME_SPECULATE_LOOKUP_H

#include "speculate/drafter.h"

#include "absl/container/flat_hash_map.h"

#include <array>

namespace hone::speculate {

/// Looks up n-grams of one length in the text that is being written.
class LookupDrafter : public Drafter {
public:
  /// As in the first implementations.
  static constexpr size_t kTokens = 3;

  void beginText() override;
  void append(std::span<const int64_t> tokens) override;
  Draft draft(int64_t most) const override;

private:
  using Ngram = std::array<int64_t, kTokens>;

  std::vector<int64_t> text;
  absl::flat_hash_map<Ngram, size_t> endOf; // where it ended first
  size_t matchedEnd = 0;                    // of the last n-gram, or 0
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_LOOKUP_H
