// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Detokenizer and stop strings around the generation loop.

#include "generate/text_writer.h"

#include "generate/text_stream.h"

#include <filesystem>

namespace hone::rt {

absl::StatusOr<std::shared_ptr<const text::Tokenizer>> loadTokenizer(const Module &module) {
  if (module.manifest().tokenizer.empty())
    return std::shared_ptr<const text::Tokenizer>();
  std::string path = (std::filesystem::path(module.folder()) / module.manifest().tokenizer).string();
  HONE_ASSIGN_OR_RETURN(text::Tokenizer tokenizer, text::Tokenizer::fromFile(path));
  return std::make_shared<const text::Tokenizer>(std::move(tokenizer));
}

absl::StatusOr<std::vector<int64_t>> encodePrompt(const text::Tokenizer &tokenizer, std::string_view prompt) {
  HONE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.encode(prompt));
  return std::vector<int64_t>(ids.begin(), ids.end());
}

absl::StatusOr<GenerationStatistics> writeText(LanguageModel &model, const text::Tokenizer *tokenizer,
                                               std::span<const int64_t> prompt, const WritingOptions &options,
                                               const PieceReceiver &receive) {
  HONE_ASSIGN_OR_RETURN(TextStream text, TextStream::create(tokenizer, options.stop));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Decoder> decoder,
                        createDecoder(model, options.sampling, options.generation, options.speculation, prompt));
  bool isReceived = true;
  auto pass = [&](int64_t token) -> absl::StatusOr<bool> {
    HONE_ASSIGN_OR_RETURN(std::string piece, text.push(token));
    absl::StatusOr<bool> goOn = receive(token, piece);
    isReceived = goOn.ok();
    HONE_RETURN_IF_ERROR(goOn.status());
    return *goOn && !text.stopped();
  };
  absl::StatusOr<GenerationStatistics> statistics = generate(model, prompt, options.generation, *decoder, pass);
  // What was written before a failure is delivered to its end.
  absl::StatusOr<std::string> rest = text.finish();
  if (isReceived && rest.ok() && !rest->empty())
    HONE_RETURN_IF_ERROR(receive(kNoToken, *rest).status());
  if (statistics.ok())
    HONE_RETURN_IF_ERROR(rest.status());
  return statistics;
}

} // namespace hone::rt
