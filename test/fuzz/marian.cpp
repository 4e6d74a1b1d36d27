// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fuzz target: source.spm of a Marian model, and after a byte of zero vocab.json. What is made of them is a tokenizer, which takes any text.

#include "hone/text/marian.h"
#include "hone/text/tokenizer.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view all(reinterpret_cast<const char *>(data), size);
  // A byte of zero may be in the pieces, but not in the vocabulary.
  size_t mark = all.rfind('\0');
  if (mark == all.npos)
    return 0;
  auto json = hone::text::makeMarianTokenizer(all.substr(0, mark), all.substr(mark + 1), "fuzz");
  if (!json.ok())
    return 0;
  auto tokenizer = hone::text::Tokenizer::fromJson(*json);
  if (tokenizer.ok() && !tokenizer->encode(" a text ").ok())
    std::abort();
  return 0;
}
