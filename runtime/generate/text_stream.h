// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text of new tokens, as far as it is certain: until a stop string, and no part of one that may come.

#ifndef HONE_RUNTIME_GENERATE_TEXT_STREAM_H
#define HONE_RUNTIME_GENERATE_TEXT_STREAM_H

#include "hone/text/tokenizer.h"
#include "text/stop_strings.h"

#include <optional>

namespace hone::rt {

/// Turns the tokens of one text into text that is certain. Without a tokenizer there is no text.
class TextStream {
public:
  /// `tokenizer` outlives the stream and may be null. Fails for stop strings without a tokenizer, and for those that cannot be.
  static absl::StatusOr<TextStream> create(const text::Tokenizer *tokenizer, const std::vector<std::string> &stop);

  /// What is certain with one token more.
  absl::StatusOr<std::string> push(int64_t token);
  /// What is left at the end of the text.
  absl::StatusOr<std::string> finish();
  /// Whether a stop string came.
  bool stopped() const { return stop.stopped(); }

private:
  TextStream(const text::Tokenizer *tokenizer, text::StopStrings stop);

  std::optional<text::Detokenizer> detokenizer;
  text::StopStrings stop;
};

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_TEXT_STREAM_H
