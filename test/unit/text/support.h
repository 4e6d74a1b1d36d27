// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small tokenizers, written out, for tests of runtime/text.

#ifndef HONE_TEST_UNIT_TEXT_SUPPORT_H
#define HONE_TEST_UNIT_TEXT_SUPPORT_H

#include "hone/text/tokenizer.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hone::test {

using Json = nlohmann::json;

/// A tokenizer.json with nothing but a BPE model: ids in the order of `tokens`.
inline Json bpe(const std::vector<std::string> &tokens, const std::vector<std::string> &merges) {
  Json vocabulary = Json::object();
  for (const std::string &token : tokens)
    vocabulary[token] = vocabulary.size();
  return {{"version", "1.0"}, {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
}

inline Json addedToken(const std::string &content, const Json &changes = Json::object()) {
  Json token = {{"id", 0},         {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", false}};
  token.update(changes);
  return token;
}

inline text::Tokenizer tokenizer(const Json &document) {
  auto result = text::Tokenizer::fromJson(document.dump());
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

/// The tokens of `input`, or the message of the failure.
inline std::vector<std::string> tokens(const text::Tokenizer &tokenizer, std::string_view input, bool special = true) {
  auto ids = tokenizer.encode(input, special);
  if (!ids.ok())
    return {std::string(ids.status().message())};
  std::vector<std::string> result;
  for (int32_t id : *ids)
    result.push_back(tokenizer.tokenOf(id).value_or("none"));
  return result;
}

/// The message with which a document is refused; "" where it is accepted.
inline std::string refusalOfText(const std::string &document) {
  auto result = text::Tokenizer::fromJson(document);
  return std::string(result.status().message());
}
inline std::string refusal(const Json &document) { return refusalOfText(document.dump()); }

} // namespace hone::test

#endif // HONE_TEST_UNIT_TEXT_SUPPORT_H
