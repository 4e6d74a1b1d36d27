// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thresholds of SpargeAttention for each KV head, as `hone calibrate --attention-error` finds them. A safetensors file with a tensor of f32
// [KV heads, 3] for each layer, by the name of the slot that holds its keys: rows of thresholds as hone.select_means has them.

#ifndef HONE_COMPRESS_ATTENTIONTHRESHOLDS_H
#define HONE_COMPRESS_ATTENTIONTHRESHOLDS_H

#include "hone/io/status.h"

#include <map>
#include <string>
#include <vector>

namespace hone::compress {

/// Least number of blocks, attention, similarity.
inline constexpr int64_t kThresholdsOfHead = 3;

struct AttentionThresholds {
  std::string model;                              // its fingerprint
  int64_t sinks = 0, window = 0, block = 0;       // keys, beside which they were measured
  std::map<std::string, std::vector<float>> rows; // by slot: [KV heads][3]
};

/// Writes such a file, which appears whole.
absl::Status writeAttentionThresholds(const std::string &path, const AttentionThresholds &thresholds);

/// Fails where the file is no such file, or a number is none that a threshold can be.
absl::StatusOr<AttentionThresholds> readAttentionThresholds(const std::string &path);

} // namespace hone::compress

#endif // HONE_COMPRESS_ATTENTIONTHRESHOLDS_H
