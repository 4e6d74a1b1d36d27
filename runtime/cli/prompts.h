// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prompts by category, as Spec-Bench (Xia et al. 2024) has them.

#ifndef HONE_RUNTIME_CLI_PROMPTS_H
#define HONE_RUNTIME_CLI_PROMPTS_H

#include "core/module.h"

namespace hone::cli {

/// A prompt, or several that go on with one text: each comes after the answer to the one before.
struct Prompt {
  std::string name; // where it is from: "prompts.jsonl line 3"
  std::string category;
  std::vector<std::vector<int64_t>> turns; // tokens
};

/// Of a file of lines that are JSON objects with the string `category`, and the string `prompt` or the strings `turns`; other members and
/// empty lines count nothing. Spec-Bench's question.jsonl is one. Texts are cut into tokens by the tokenizer of `module`.
absl::StatusOr<std::vector<Prompt>> readPrompts(const std::string &path, const rt::Module &module);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_PROMPTS_H
