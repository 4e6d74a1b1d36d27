// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `run` with a language model: text or tokens go on where a prompt ends.

#ifndef HONE_RUNTIME_CLI_GENERATE_H
#define HONE_RUNTIME_CLI_GENERATE_H

#include "cli/speculation.h"
#include "generate/text_writer.h"

#include <optional>

namespace hone::cli {

struct GenerateOptions {
  std::optional<std::string> prompt, promptFile, tokens, outputTokens, promptCache, kvOffload, context;
  std::optional<std::string> encoderInputs, decoderPrompt, decoderTokens;
  rt::WritingOptions writing; // without speculation
  SpeculationFlags speculation;
  int64_t threads = 0, batch = 1;
  bool ignoreEnd = false, statistics = false;
};

/// The tokens of --prompt or --prompt-file.
absl::StatusOr<std::vector<int64_t>> readPrompt(const GenerateOptions &options, const text::Tokenizer &tokenizer);

absl::Status generateText(std::shared_ptr<const rt::Module> module, GenerateOptions options);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_GENERATE_H
