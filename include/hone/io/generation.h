// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How texts of a model begin and end, as its generation_config.json says.

#ifndef HONE_IO_GENERATION_H
#define HONE_IO_GENERATION_H

#include "hone/io/status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hone::io {

/// Tokens that a text cannot have, whatever their logits.
struct TokenRules {
  std::vector<int64_t> never;    // suppress_tokens, and bad_words_ids of one token
  std::vector<int64_t> notFirst; // of the new ones: begin_suppress_tokens
  std::optional<int64_t> last;   // where a limit of length ends the text, this is its last token: forced_eos_token_id

  bool isEmpty() const { return never.empty() && notFirst.empty() && !last; }
};

struct GenerationInfo {
  std::vector<int64_t> endTokens;
  std::optional<int64_t> beginToken; // of a text that begins with nothing
  /// What the decoder of an encoder begins with. Where there are several tokens, it is the likeliest of them: the language of what is heard.
  std::vector<std::vector<int64_t>> startTokens;
  TokenRules rules;

  bool isEmpty() const { return endTokens.empty() && !beginToken && startTokens.empty() && rules.isEmpty(); }
};

struct GenerationConfig {
  GenerationInfo info;
  std::optional<int64_t> featureToken; // image_token_id, image_token_index, audio_token_id or audio_token_index
  std::vector<std::string> ignored; // members that ask for another text than is going to be written, as `num_beams=4`
};

/// What the text of a generation_config.json says, in the words of Hugging Face transformers, or that of a config.json, which has the same
/// members in older models; `name` begins every error. Fails for what is no JSON object, or has tokens that are no whole numbers.
absl::StatusOr<GenerationConfig> parseGenerationConfig(std::string_view text, const std::string &name);
absl::StatusOr<GenerationConfig> readGenerationConfig(const std::string &path);

} // namespace hone::io

#endif // HONE_IO_GENERATION_H
