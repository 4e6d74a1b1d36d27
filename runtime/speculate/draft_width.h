// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many drafted tokens pay: what passes of each width cost on this machine, and how many of their tokens are accepted, as measured
// while the text is written.

#ifndef HONE_RUNTIME_SPECULATE_DRAFT_WIDTH_H
#define HONE_RUNTIME_SPECULATE_DRAFT_WIDTH_H

#include "speculate/drafter.h"

#include <array>

namespace hone::speculate {

/// Chooses the length of a draft by the expected tokens a second. With acceptance a of a drafted token, given that those before it were
/// accepted, n drafted tokens of a chain give 1 + a + a^2 + … + a^n. In a tree a token with the share s of what followed its parent is accepted
/// with probability a s, given its parent: a is what is accepted of all that the drafter saw. The first pass has no draft, so that it is known
/// what one takes, and a draft has at most twice as many tokens as one before it. What drafts lose in all, beside passes without, is limited:
/// to the time of one pass and a hundredth of all time.
class DraftWidth {
public:
  /// At most `most` drafted tokens at once, from `drafters` drafters, whose acceptance is counted for each of them.
  explicit DraftWidth(int64_t most, size_t drafters = 1) : largest(most), drafters(drafters) { trust.fill(1); }

  int64_t most() const { return largest; }
  /// How many of the drafted tokens to verify.
  int64_t choose(const Draft &draft) const { return choose(draft, draft.size()); }
  /// How many of `available` tokens to verify, or to draft where that takes so long for each, of a chain unless `draft` has as many.
  int64_t choose(const Draft &draft, int64_t available, double secondsPerDraft = 0) const;
  /// A pass over a token and the first `verified` of a draft, of which the nodes `path` were accepted; drafting took so long for each.
  void record(const Draft &draft, int64_t verified, std::span<const int64_t> path, double seconds,
              double secondsPerDraft = 0);
  /// The token that came where none of a draft was verified: what would have become of the first one.
  void observe(const Draft &draft, int64_t token);

private:
  /// Classes of passes by drafted tokens, and of drafts by matched ones: 0, 1, 2 … 3, 4 … 7, ….
  static constexpr size_t kRowClasses = 8, kMatchClasses = 7;

  struct Acceptance {
    double accepted = 0, tried = 0;
    void count(int64_t newlyAccepted, double newlyTried);
  };

  struct DrafterAcceptance {
    std::array<Acceptance, kMatchClasses> classes;
    Acceptance all = {.accepted = 1, .tried = 2}; // before anything was seen: one in two
  };

  void count(const Draft &draft, int64_t accepted, double tried);
  double acceptanceOf(size_t drafter, int64_t matched) const;
  double expectedSeconds(int64_t rows) const;

  static constexpr int64_t kFirstDraft = 2;

  int64_t largest, reach = kFirstDraft; // most tokens of any draft, and of the next one
  double lost = 0, total = 0; // seconds: what drafts took more than passes without would have, and of all passes
  std::array<double, kRowClasses> seconds = {}; // 0: not measured
  std::array<double, kRowClasses> trust;        // what is left of a time that was not measured again
  std::vector<DrafterAcceptance> drafters;
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_DRAFT_WIDTH_H
