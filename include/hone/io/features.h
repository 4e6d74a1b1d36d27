// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Features of an encoder, of images or audio, among the tokens of a text.

#ifndef HONE_IO_FEATURES_H
#define HONE_IO_FEATURES_H

#include <cstdint>
#include <string>

namespace hone::io {

/// The id that stands for the first row of the features, as TensorRT-LLM's prompt tables have theirs after the vocabulary. No vocabulary is as
/// large, and an i32 holds it.
inline constexpr int64_t kFirstFeatureId = int64_t{1} << 30;

struct FeatureInfo {
  std::string input; // context of the entry `forward`, [features, size]
  int64_t token = 0; // that stands in prompts where features go: `image_token_id` of config.json
};

} // namespace hone::io

#endif // HONE_IO_FEATURES_H
