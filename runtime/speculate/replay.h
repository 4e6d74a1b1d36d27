// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drafts of a known text that are right as often as is asked for: what speculation costs at an acceptance, whatever the model.

#ifndef HONE_RUNTIME_SPECULATE_REPLAY_H
#define HONE_RUNTIME_SPECULATE_REPLAY_H

#include "speculate/drafter.h"

namespace hone::speculate {

struct Replay {
  std::vector<int64_t> text; // a prompt, and how the model goes on
  double acceptance = 0;     // the probability of a drafted token to be right
  uint64_t seed = 0;
};

/// The acceptance with which passes give `length` tokens on average, from 1 to drafted + 1, where each has `drafted` tokens:
/// 1 + a + a^2 + … = length (Leviathan et al. 2023, equation 1).
double acceptanceFor(double length, int64_t drafted);

/// Follows a text that begins with the replayed prompt. Whether the token at a position is drafted right depends on seed and position, so
/// that a text has the same drafts each time; at 0 all are wrong, at 1 none is. Nothing is drafted beyond the known text.
class ReplayDrafter : public Drafter {
public:
  explicit ReplayDrafter(Replay replay) : replay(std::move(replay)) {}

  void beginText() override { length = 0; }
  void append(std::span<const int64_t> tokens) override { length += tokens.size(); }
  Draft draft(int64_t most) const override;

private:
  Replay replay;
  size_t length = 0;
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_REPLAY_H
