// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many drafted tokens pay: what passes of each width cost on this machine, and how many of their tokens are accepted, as measured
// while the text is written.

#ifndef HONE_RUNTIME_SPECULATE_DRAFT_WIDTH_H
#define HONE_RUNTIME_SPECULATE_DRAFT_WIDTH_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace hone::speculate {

/// Chooses the length of a draft by the expected tokens a second. With acceptance a of a drafted token, given that those before it were
/// accepted, n drafted tokens give 1 + a + a^2 + … + a^n.
class DraftWidth {
public:
  /// `most` drafted tokens at once.
  explicit DraftWidth(int64_t most) : most(most) {}

  /// How many of `available` drafted tokens to verify; `matched` as in Draft.
  int64_t choose(int64_t available, int64_t matched) const;
  /// A pass over a token and `drafted` others, of which `accepted` were.
  void record(int64_t drafted, int64_t matched, int64_t accepted, double seconds);
  /// Whether the first token of a draft that was not verified would have been accepted.
  void observe(int64_t matched, bool isRight);

private:
  /// Classes of passes by drafted tokens, and of drafts by matched ones: 0, 1, 2 … 3, 4 … 7, ….
  static constexpr size_t kRowClasses = 8, kMatchClasses = 7;

  struct Acceptance {
    // Before anything was seen: one in two.
    double accepted = 1, tried = 2;
  };

  void count(int64_t matched, int64_t accepted, int64_t tried);
  double expectedSeconds(int64_t rows) const;

  int64_t most;
  std::array<double, kRowClasses> seconds = {}; // 0: not measured
  std::array<Acceptance, kMatchClasses> acceptances;
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_DRAFT_WIDTH_H
