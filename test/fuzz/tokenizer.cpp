//===- tokenizer.cpp - fuzz target: tokenizer.json and the texts it is used on ------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The input is a tokenizer.json, a NUL and a text. What loads can tokenize the text or say why not; the ids stream to
// valid UTF-8 that equals the decoded text.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/text/tokenizer.h"
#include "text/unicode.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view input(reinterpret_cast<const char *>(data), size);
  size_t end = std::min(input.find('\0'), input.size());
  auto tokenizer = hone::text::Tokenizer::fromJson(input.substr(0, end));
  if (!tokenizer.ok())
    return 0;
  auto ids = tokenizer->encode(input.substr(std::min(end + 1, input.size())));
  if (!ids.ok())
    return 0;
  auto whole = tokenizer->decode(*ids, /*skipSpecialTokens=*/false);
  if (!whole.ok())
    return 0;
  hone::text::Detokenizer detokenizer(*tokenizer, /*skipSpecialTokens=*/false);
  std::string streamed;
  for (int32_t id : *ids) {
    std::string part = *detokenizer.push(id);
    if (hone::text::findInvalidUtf8(part) != std::string::npos)
      std::abort();
    streamed += part;
  }
  if (streamed + *detokenizer.finish() != *whole)
    std::abort();
  return 0;
}
