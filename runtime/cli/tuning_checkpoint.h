// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of a training after some steps, in a safetensors file: its slots by their names, and in the metadata the steps, a description of
// the run, and a sum of the bytes.

#ifndef HONE_RUNTIME_CLI_TUNING_CHECKPOINT_H
#define HONE_RUNTIME_CLI_TUNING_CHECKPOINT_H

#include "core/state.h"

#include <string>

namespace hone::cli {

/// The elements of a dense tensor.
std::string_view bytesOf(const hone_tensor &tensor);

/// Whether all elements of a dense tensor of f32 are finite.
bool isFinite(const hone_tensor &tensor);

/// Writes what the slots hold after `step` steps, to a file that appears whole or not at all.
absl::Status writeCheckpoint(const std::string &path, const std::string &run, int64_t step, rt::State &state);

/// Gives the slots what the file has; returns after how many steps that was. Where there is no file, 0, and the state stays as it is. Fails
/// for a file that is no checkpoint, is damaged, or is of another run.
absl::StatusOr<int64_t> readCheckpoint(const std::string &path, const std::string &run, rt::State &state);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_TUNING_CHECKPOINT_H
