// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `hone calibrate --kv-importance` does with an artefact that has the entry `importance`.

#ifndef HONE_CLI_KEY_IMPORTANCE_H
#define HONE_CLI_KEY_IMPORTANCE_H

#include "hone/cli/calibrate.h"

#include <map>

namespace hone::cli {

/// Runs the entry `forward` of `artefact` on each window, fed at once, and then `importance`: by the slot of keys of each layer with queries,
/// which share of the attention of all queries and heads each key of a window gets, the greatest first, as the mean over windows.
absl::StatusOr<std::map<std::string, std::vector<double>>>
measureKeyImportance(const std::string &artefact, const CalibrationTokens &tokens, int threads);

} // namespace hone::cli

#endif // HONE_CLI_KEY_IMPORTANCE_H
