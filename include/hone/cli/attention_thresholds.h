// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `hone calibrate --attention-error` does with an artefact that has the entries of hone-measure-selection.

#ifndef HONE_CLI_ATTENTION_THRESHOLDS_H
#define HONE_CLI_ATTENTION_THRESHOLDS_H

#include "hone/cli/calibrate.h"

#include <vector>

namespace hone::cli {

/// What is chosen for a KV head, and what it costs on the tokens.
struct HeadThresholds {
  double least = 0, share = 1, similarity = -1; // as hone.select_means has them
  double blocks = 1;                            // that are read, of all that are visible
  double error = 0;                             // the sum of the magnitudes of errors over that of results
  std::vector<std::vector<int64_t>> lists;      // the blocks that each block of queries of the last window reads
};

/// An attention, by the slot of its keys.
struct LayerThresholds {
  std::string slot;
  std::vector<HeadThresholds> heads; // KV heads
};

/// Runs the entry `forward` of `artefact` on each window, fed at once, and then `selection_errors` with a grid of thresholds: for each
/// layer, in their order, and KV head those with the fewest blocks whose error on all windows together is at most `error`. At least the
/// share `least` of the blocks is read.
absl::StatusOr<std::vector<LayerThresholds>> searchAttentionThresholds(const std::string &artefact,
                                                                       const CalibrationTokens &tokens, double error,
                                                                       double least, int threads);

} // namespace hone::cli

#endif // HONE_CLI_ATTENTION_THRESHOLDS_H
