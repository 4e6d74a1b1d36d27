// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lines of JSON, and their tokens.

#include "cli/prompts.h"

#include "generate/text_writer.h"
#include "hone/io/file.h"
#include "io/json.h"

namespace hone::cli {
namespace {

using io::invalid;

/// The texts of a line, at least one.
absl::StatusOr<std::vector<std::string>> readTurns(const io::ParsedJson &line, const std::string &name) {
  std::vector<std::string> texts;
  const io::ParsedJson *turns = io::member(line, "turns"), *prompt = io::member(line, "prompt");
  if ((turns != nullptr) == (prompt != nullptr))
    return invalid(name, ": expected either 'prompt' or 'turns', but got ", turns ? "both" : "neither");
  if (prompt && prompt->is_string())
    return std::vector{prompt->get<std::string>()};
  if (prompt || !turns->is_array() || turns->empty())
    return invalid(name, ": expected ", prompt ? "'prompt' to be a string" : "'turns' to be a list of strings",
                   ", but got ", (prompt ? prompt : turns)->type_name());
  for (const io::ParsedJson &turn : *turns) {
    if (!turn.is_string())
      return invalid(name, ": expected 'turns' to be a list of strings, but got ", turn.type_name(), " in it");
    texts.push_back(turn.get<std::string>());
  }
  return texts;
}

absl::StatusOr<std::vector<int64_t>> encodeTurn(const text::Tokenizer &tokenizer, const std::string &text,
                                                bool isFirst) {
  HONE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.encode(text, /*addSpecialTokens=*/isFirst));
  return std::vector<int64_t>(ids.begin(), ids.end());
}

absl::StatusOr<Prompt> readPrompt(std::string_view text, const std::string &name, const text::Tokenizer &tokenizer) {
  HONE_ASSIGN_OR_RETURN(io::JsonDocument line, io::parseJson(text, name));
  std::optional<std::string> category = io::asString(io::member(*line, "category"));
  if (!category)
    return invalid(name, ": expected an object with the string 'category'");
  HONE_ASSIGN_OR_RETURN(std::vector<std::string> texts, readTurns(*line, name));
  Prompt prompt = {name, *category, {}};
  for (const std::string &turn : texts) {
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> tokens, encodeTurn(tokenizer, turn, prompt.turns.empty()));
    if (tokens.empty())
      return invalid(name, ": expected a prompt of at least one token, but got '", turn, "'");
    prompt.turns.push_back(std::move(tokens));
  }
  return prompt;
}

} // namespace

absl::StatusOr<std::vector<Prompt>> readPrompts(const std::string &path, const rt::Module &module) {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const text::Tokenizer> tokenizer, rt::loadTokenizer(module));
  if (!tokenizer)
    return invalid(module.folder(), ": has no tokenizer, which --prompts needs");
  HONE_ASSIGN_OR_RETURN(std::string text, io::readFile(path));
  std::vector<Prompt> prompts;
  HONE_RETURN_IF_ERROR(io::forEachLine(text, [&](std::string_view line, int64_t number) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(Prompt prompt, readPrompt(line, io::cat(path, " line ", number), *tokenizer));
    prompts.push_back(std::move(prompt));
    return absl::OkStatus();
  }));
  if (prompts.empty())
    return invalid(path, ": expected a prompt in a line at least, but got none");
  return prompts;
}

} // namespace hone::cli
