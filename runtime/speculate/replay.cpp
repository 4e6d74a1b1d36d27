// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A coin for each position.

#include "speculate/replay.h"

#include "hone/io/split_mix.h"

#include <algorithm>

namespace hone::speculate {
namespace {

constexpr int64_t kMatched = 8; // all drafts have the same, so that acceptance is counted for all together
constexpr double kBits53 = 0x1p-53;

/// Uniform in [0, 1).
double drawAt(uint64_t seed, size_t position) {
  uint64_t bits = io::splitMix(seed + (position + 1) * io::kSplitMixStep);
  return static_cast<double>(bits >> 11) * kBits53;
}

/// Tokens of a pass on average.
double lengthFor(double acceptance, int64_t drafted) {
  double length = 1, likely = 1;
  for (int64_t i = 0; i < drafted; ++i)
    length += likely *= acceptance;
  return length;
}

} // namespace

double acceptanceFor(double length, int64_t drafted) {
  double least = 0, most = 1;
  if (length <= 1)
    return 0;
  if (length >= lengthFor(most, drafted))
    return most;
  constexpr int halvings = 60; // beyond the 53 bits of a double
  for (int i = 0; i < halvings; ++i) {
    double middle = (least + most) / 2;
    (lengthFor(middle, drafted) <= length ? least : most) = middle;
  }
  return least;
}

Draft ReplayDrafter::draft(int64_t most) const {
  std::span<const int64_t> known = replay.text;
  known = known.subspan(std::min(length, known.size()));
  known = known.first(std::min(known.size(), static_cast<size_t>(std::max<int64_t>(most, 0))));
  Draft draft = {{{known.begin(), known.end()}}, kMatched};
  for (size_t i = 0; i < draft.tokens.size(); ++i)
    if (drawAt(replay.seed, length + i) >= replay.acceptance)
      draft.tokens[i] = draft.tokens[i] == 0 ? 1 : 0; // another one of any vocabulary
  return draft;
}

} // namespace hone::speculate
