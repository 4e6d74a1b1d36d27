// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `run` with a language model: tokens go on where a prompt ends.

#ifndef HONE_RUNTIME_CLI_GENERATE_H
#define HONE_RUNTIME_CLI_GENERATE_H

#include "core/language_model.h"

#include <optional>

namespace hone::cli {

struct GenerateOptions {
  std::optional<std::string> tokens, outputTokens;
  int64_t maximalNewTokens = 128, prefillChunk = 0, threads = 0;
  bool ignoreEnd = false, statistics = false;
};

absl::Status generateText(std::shared_ptr<const rt::Module> module, const GenerateOptions &options);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_GENERATE_H
