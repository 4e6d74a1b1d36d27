// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a folder of Sentence Transformers says of a model that is a text's encoder.

#ifndef HONE_IO_SENTENCE_ENCODER_H
#define HONE_IO_SENTENCE_ENCODER_H

#include "hone/io/status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace hone::io {

struct SentenceEncoder {
  std::string pooling; // pooling_mode of its module Pooling: "mean", "cls", ...
  bool normalizes = false;
  std::optional<int64_t> mostTokens; // of a text, with the special ones: max_seq_length
};

/// Of the modules that `modules.json` in `folder` lists, nothing where there is no such file. Fails, naming it, for a module that is none of
/// Transformer, Pooling and Normalize, and for several kinds of pooling.
absl::StatusOr<std::optional<SentenceEncoder>> readSentenceEncoder(const std::string &folder);

} // namespace hone::io

#endif // HONE_IO_SENTENCE_ENCODER_H
