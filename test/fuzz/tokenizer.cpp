//===- tokenizer.cpp - fuzz target: tokenizer.json ----------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file that loads encodes any text, and decoding token by token gives the text that decoding at once gives.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "text/tokenizer.h"

#include <cstdlib>

static std::string decodeStepwise(const hone::text::Tokenizer &tokenizer, absl::Span<const int32_t> ids) {
  hone::text::Detokenizer stream(tokenizer);
  std::string text;
  for (int32_t id : ids)
    if (absl::StatusOr<std::string> piece = stream.push(id); piece.ok())
      text += *piece;
  if (absl::StatusOr<std::string> rest = stream.finish(); rest.ok())
    text += *rest;
  return text;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view json(reinterpret_cast<const char *>(data), size);
  absl::StatusOr<hone::text::Tokenizer> tokenizer = hone::text::Tokenizer::fromJson(json);
  if (!tokenizer.ok())
    return 0;
  for (std::string_view text :
       {"", "def f(x): return 'é\xf0\x9f\x98\x80'  # 1234\n\n\t", "<s> hello,  world</s>", "日本語 ﬁ"}) {
    absl::StatusOr<std::vector<int32_t>> ids = tokenizer->encode(text);
    if (!ids.ok())
      continue;
    absl::StatusOr<std::string> decoded = tokenizer->decode(*ids);
    if (decoded.ok() && decodeStepwise(*tokenizer, *ids) != *decoded)
      std::abort();
  }
  return 0;
}
