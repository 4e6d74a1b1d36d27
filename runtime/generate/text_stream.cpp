// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A detokenizer, and stop strings after it.

#include "generate/text_stream.h"

#include "hone/io/status.h"

namespace hone::rt {

absl::StatusOr<TextStream> TextStream::create(const text::Tokenizer *tokenizer, const std::vector<std::string> &stop) {
  if (!tokenizer && !stop.empty())
    return io::invalid("stop strings need a tokenizer, and the artefact has none");
  HONE_ASSIGN_OR_RETURN(text::StopStrings strings, text::StopStrings::create(stop));
  return TextStream(tokenizer, std::move(strings));
}

TextStream::TextStream(const text::Tokenizer *tokenizer, text::StopStrings stop) : stop(std::move(stop)) {
  if (tokenizer)
    detokenizer.emplace(*tokenizer);
}

absl::StatusOr<std::string> TextStream::push(int64_t token) {
  if (!detokenizer)
    return std::string();
  HONE_ASSIGN_OR_RETURN(std::string piece, detokenizer->push(static_cast<int32_t>(token)));
  return stop.push(piece);
}

absl::StatusOr<std::string> TextStream::finish() {
  if (!detokenizer || stop.stopped())
    return std::string();
  HONE_ASSIGN_OR_RETURN(std::string piece, detokenizer->finish());
  std::string rest = stop.push(piece);
  return stop.stopped() ? rest : rest + stop.finish();
}

} // namespace hone::rt
