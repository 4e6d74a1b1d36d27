// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `hone calibrate` does with an artefact whose program shows the inputs of its layers.

#ifndef HONE_CLI_CALIBRATE_H
#define HONE_CLI_CALIBRATE_H

#include "hone/calibration/statistics.h"

namespace hone::cli {

/// Tokens of a file, for windows that do not overlap.
struct CalibrationTokens {
  std::string file;
  std::vector<int64_t> ids; // whole windows
  int64_t window = 0;
};

/// The first tokens of a .npy, no more than `most`, as many whole windows as there are. Fails where they are less than one.
absl::StatusOr<CalibrationTokens> readCalibrationTokens(const std::string &file, int64_t window, int64_t most);

/// Runs the entry `forward` of `artefact` on each window, from nothing but the window, and counts what it shows.
absl::Status runCalibration(const std::string &artefact, const CalibrationTokens &tokens, int threads,
                            calibration::Statistics &statistics);

} // namespace hone::cli

#endif // HONE_CLI_CALIBRATE_H
