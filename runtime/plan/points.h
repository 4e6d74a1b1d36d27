// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measured losses as files have them: JSON Lines, an object a point with the members kind, parameters, rate, tokens, dense_loss and loss.

#ifndef HONE_RUNTIME_PLAN_POINTS_H
#define HONE_RUNTIME_PLAN_POINTS_H

#include "plan/p2_law.h"

#include <map>
#include <string>

namespace hone::plan {

/// By kind of sparsity ("structured", "2:4"): kinds have laws of their own.
using LossPoints = std::map<std::string, std::vector<LossPoint>>;

/// Other members are ignored, and so are empty lines. Fails with file and line where a member is missing, or is no number of its range: a
/// rate between 0 and 1, all others positive.
absl::StatusOr<LossPoints> parseLossPoints(std::string_view text, const std::string &name);

} // namespace hone::plan

#endif // HONE_RUNTIME_PLAN_POINTS_H
