//===- text.cpp - fuzz target: text to tokens and back ------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With a byte-level tokenizer every text that is UTF-8 comes back as it was.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/text/tokenizer.h"

#include <cstdlib>
#include <iostream>

static const hone::text::Tokenizer &byteLevelTokenizer() {
  static const absl::StatusOr<hone::text::Tokenizer> tokenizer = hone::text::Tokenizer::fromFile(HONE_TOKENIZER);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status().ToString() << "\n";
    std::exit(1);
  }
  return *tokenizer;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  const hone::text::Tokenizer &tokenizer = byteLevelTokenizer();
  absl::StatusOr<std::vector<int32_t>> ids = tokenizer.encode(text);
  if (!ids.ok())
    return 0;
  absl::StatusOr<std::string> decoded = tokenizer.decode(*ids, /*skipSpecialTokens=*/false);
  if (!decoded.ok() || *decoded != text)
    std::abort();
  return 0;
}
