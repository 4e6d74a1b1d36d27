// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Speculative decoding (Leviathan et al. 2023): a drafter proposes the next tokens of a text, and the model verifies them in one pass.

#ifndef HONE_RUNTIME_SPECULATE_DRAFTER_H
#define HONE_RUNTIME_SPECULATE_DRAFTER_H

#include "speculate/draft_tree.h"

#include <cstddef>

namespace hone::speculate {

/// Without tokens where nothing is proposed.
struct Draft : DraftTree {
  int64_t matched = 0; // how much speaks for it: tokens of the text's end that the drafter has seen before
  size_t drafter = 0;  // which of several it is from
  /// By token: of what followed its parent where the drafter saw that, the share that was this token. Empty where it was all.
  std::vector<double> shares = {};
};

/// Follows texts, one after the other, and proposes how the last one goes on. Not for several threads at once.
class Drafter {
public:
  virtual ~Drafter() = default;

  /// What is appended from here on is another text: no match reaches back to the one before.
  virtual void beginText() = 0;
  /// Tokens that the text got.
  virtual void append(std::span<const int64_t> tokens) = 0;
  /// At most `most` tokens that may come next, a chain.
  virtual Draft draft(int64_t most) const = 0;
  /// At most `most` tokens of all continuations that the drafter knows, the likeliest first. A drafter that knows one gives that.
  virtual Draft draftTree(int64_t most) const { return draft(most); }
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_DRAFTER_H
