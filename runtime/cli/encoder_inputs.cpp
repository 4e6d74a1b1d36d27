// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prompts of decoders, and of encoders that a decoder follows.

#include "cli/encoder_inputs.h"

#include "cli/commands.h"

#include <algorithm>

namespace hone::cli {
namespace {

using io::invalid;
using Rows = std::vector<std::vector<int64_t>>;

/// What a prompt is of the encoder, or of a decoder alone.
absl::StatusOr<Rows> readPrompts(const rt::Module &module, const text::Tokenizer *tokenizer,
                                 const GenerateOptions &options) {
  if (options.tokens)
    return readTokens(*options.tokens);
  if (!tokenizer)
    return invalid(module.folder(), ": has no tokenizer, so that a prompt must be given by --tokens");
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> tokens, readPrompt(options, *tokenizer));
  return Rows{tokens};
}

absl::StatusOr<std::vector<int64_t>> readDecoderTokens(const rt::Module &module, const text::Tokenizer *tokenizer,
                                                       const GenerateOptions &options) {
  if (options.decoderTokens) {
    HONE_ASSIGN_OR_RETURN(Rows rows, readTokens(*options.decoderTokens));
    if (rows.size() != 1 || rows.front().empty())
      return invalid(*options.decoderTokens, ": expected the tokens of one text, but got ", rows.size(), " rows");
    return rows.front();
  }
  if (options.decoderPrompt) {
    if (!tokenizer)
      return invalid(module.folder(), ": has no tokenizer, so that the decoder's first tokens must be given by "
                                      "--decoder-tokens");
    HONE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer->encode(*options.decoderPrompt, false));
    return std::vector<int64_t>(ids.begin(), ids.end());
  }
  if (module.manifest().generation.startTokens.empty())
    return invalid(module.folder(),
                   ": does not say what the decoder begins with; give it by --decoder-tokens, or compile "
                   "with --generation-config");
  return std::vector<int64_t>();
}

absl::StatusOr<NamedArrays> readEncoderInputs(const rt::Module &module, const GenerateOptions &options) {
  HONE_ASSIGN_OR_RETURN(io::NpzReader file, io::NpzReader::open(*options.encoderInputs));
  return readInputs(file, "", *module.manifest().entry(rt::kEncoderEntry));
}

absl::StatusOr<std::vector<TextBeginning>>
readEncoderBeginnings(const rt::Module &module, const text::Tokenizer *tokenizer, const GenerateOptions &options) {
  const io::EntryInfo &encoder = *module.manifest().entry(rt::kEncoderEntry);
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> first, readDecoderTokens(module, tokenizer, options));
  std::vector<TextBeginning> texts;
  if (options.encoderInputs && (options.prompt || options.promptFile || options.tokens))
    return invalid("unsupported --encoder-inputs with a prompt, which is also what the encoder reads");
  if (options.encoderInputs) {
    HONE_ASSIGN_OR_RETURN(NamedArrays inputs, readEncoderInputs(module, options));
    texts.push_back({std::move(inputs), first});
    return texts;
  }
  HONE_ASSIGN_OR_RETURN(Rows prompts, readPrompts(module, tokenizer, options));
  for (const std::vector<int64_t> &prompt : prompts) {
    if (prompt.empty())
      return invalid("expected at least one token for the encoder");
    HONE_ASSIGN_OR_RETURN(NamedArrays inputs, makeTextInputs(encoder, prompt));
    texts.push_back({std::move(inputs), first});
  }
  return texts;
}

/// A prompt with features in it, or without.
absl::StatusOr<std::vector<TextBeginning>>
readFeatureBeginnings(const rt::Module &module, const text::Tokenizer *tokenizer, const GenerateOptions &options) {
  for (const auto &[name, isGiven] :
       {std::pair("--decoder-prompt", options.decoderPrompt.has_value()),
        std::pair("--decoder-tokens", options.decoderTokens.has_value()),
        std::pair("--encoder-inputs with --context", options.encoderInputs && options.context)})
    if (isGiven)
      return invalid("unsupported ", name, " with a model that reads features among the tokens of its prompt");
  HONE_ASSIGN_OR_RETURN(Rows prompts, readPrompts(module, tokenizer, options));
  std::vector<TextBeginning> texts;
  for (std::vector<int64_t> &prompt : prompts) {
    TextBeginning &text = texts.emplace_back(TextBeginning{std::nullopt, std::move(prompt)});
    if (options.encoderInputs) {
      HONE_ASSIGN_OR_RETURN(text.encoder, readEncoderInputs(module, options));
    }
  }
  return texts;
}

} // namespace

absl::StatusOr<NamedArrays> makeTextInputs(const io::EntryInfo &entry, std::span<const int64_t> tokens) {
  NamedArrays inputs;
  for (const io::TensorInfo &input : entry.inputs) {
    auto isNamed = [&](std::string_view name) { return input.name.find(name) != input.name.npos; };
    bool isTokens = isNamed("input_ids"), isMask = isNamed("attention_mask"), isSegment = isNamed("token_type_ids");
    if ((!isTokens && !isMask && !isSegment) || input.dtype != HONE_I64 || input.shape.size() != 2)
      return invalid("the entry '", entry.name, "' reads '", input.name, "', which no text gives");
    HONE_ASSIGN_OR_RETURN(io::Array array, io::Array::create(HONE_I64, std::vector{int64_t{1}, std::ssize(tokens)}));
    if (isTokens)
      std::ranges::copy(tokens, array.as<int64_t>().begin());
    else
      std::ranges::fill(array.as<int64_t>(), isMask ? 1 : 0);
    inputs.emplace(input.name, std::move(array));
  }
  return inputs;
}

bool runsEncoder(const rt::Module &module, const GenerateOptions &options) {
  bool isNeeded = !module.manifest().features || options.encoderInputs; // texts need no features
  return module.manifest().entry(rt::kEncoderEntry) && !options.context && isNeeded;
}

absl::StatusOr<std::vector<TextBeginning>> readBeginnings(const rt::Module &module, const text::Tokenizer *tokenizer,
                                                          const GenerateOptions &options) {
  if (module.manifest().features)
    return readFeatureBeginnings(module, tokenizer, options);
  if (runsEncoder(module, options))
    return readEncoderBeginnings(module, tokenizer, options);
  for (const auto &[name, given] :
       {std::pair("--encoder-inputs", &options.encoderInputs), std::pair("--decoder-prompt", &options.decoderPrompt),
        std::pair("--decoder-tokens", &options.decoderTokens)})
    if (*given && options.context)
      return invalid("unsupported ", name, " with --context, which is what the encoder gave");
    else if (*given)
      return invalid(module.folder(), ": has no encoder for ", name, "; 'hone compile --encoder' adds it");
  HONE_ASSIGN_OR_RETURN(Rows prompts, readPrompts(module, tokenizer, options));
  std::vector<TextBeginning> texts;
  for (std::vector<int64_t> &prompt : prompts) {
    // A text that begins with nothing begins as texts do.
    if (prompt.empty() && !options.tokens && module.manifest().generation.beginToken)
      prompt.push_back(*module.manifest().generation.beginToken);
    texts.push_back({std::nullopt, std::move(prompt)});
  }
  return texts;
}

} // namespace hone::cli
