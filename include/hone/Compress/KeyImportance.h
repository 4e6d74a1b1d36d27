// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much attention the keys of each layer get, as `hone calibrate --kv-importance` measures it. A safetensors file with a tensor of f32
// [keys] for each layer, by the name of the slot that holds its keys: mean shares over windows of that many tokens, the greatest first.

#ifndef HONE_COMPRESS_KEYIMPORTANCE_H
#define HONE_COMPRESS_KEYIMPORTANCE_H

#include "hone/io/status.h"

#include <map>
#include <string>
#include <vector>

namespace hone::compress {

struct KeyImportance {
  std::string model;                               // its fingerprint
  std::map<std::string, std::vector<double>> mass; // by slot
};

/// Writes such a file, which appears whole.
absl::Status writeKeyImportance(const std::string &path, const KeyImportance &importance);

/// Fails where the file is no such file. What its numbers are is for searchKeyBudgets to check.
absl::StatusOr<KeyImportance> readKeyImportance(const std::string &path);

} // namespace hone::compress

#endif // HONE_COMPRESS_KEYIMPORTANCE_H
