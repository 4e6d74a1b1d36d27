// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writing text with a language model: tokens are sampled, decoded as they come, and end at stop strings.

#ifndef HONE_RUNTIME_GENERATE_TEXT_WRITER_H
#define HONE_RUNTIME_GENERATE_TEXT_WRITER_H

#include "generate/decoder.h"
#include "hone/sampling/sampler.h"
#include "hone/text/tokenizer.h"

namespace hone::rt {

struct WritingOptions {
  GenerationOptions generation;
  sampling::SamplingOptions sampling;
  Speculation *speculation = nullptr; // none, or drafters of all that the model writes
  std::vector<std::string> stop = {};
};

/// The token of text that was held back until the end.
constexpr int64_t kNoToken = -1;

/// Receives a token and the text that is certain with it (see hone_token_callback); false ends the writing.
using PieceReceiver = std::function<absl::StatusOr<bool>(int64_t token, std::string_view text)>;

/// The tokenizer that the artefact names, or null where it names none.
absl::StatusOr<std::shared_ptr<const text::Tokenizer>> loadTokenizer(const Module &module);

/// Goes on after `prompt`. `tokenizer` may be null where `options.stop` is empty: pieces are empty then.
absl::StatusOr<GenerationStatistics> writeText(LanguageModel &model, const text::Tokenizer *tokenizer,
                                               std::span<const int64_t> prompt, const WritingOptions &options,
                                               const PieceReceiver &receive);

/// Tokens of a prompt.
absl::StatusOr<std::vector<int64_t>> encodePrompt(const text::Tokenizer &tokenizer, std::string_view prompt);

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_TEXT_WRITER_H
