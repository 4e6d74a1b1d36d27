// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The "added_tokens" of tokenizer.json: strings that become one token wherever they occur, before anything else happens
// to the text around them.

#ifndef HONE_RUNTIME_TEXT_ADDED_VOCABULARY_H
#define HONE_RUNTIME_TEXT_ADDED_VOCABULARY_H

#include "text/model.h"
#include "text/normalizer.h"
#include "text/token_matcher.h"

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"

namespace hone::text {

class AddedVocabulary {
public:
  /// Reads the array "added_tokens" of `document`, if there is one. A token that the model knows keeps the model's id;
  /// the others get the next free ids in the order of the file, as the `tokenizers` library numbers them.
  static absl::StatusOr<AddedVocabulary> read(const JsonObject &document, const Model &model,
                                              const Normalizer *normalizer);

  /// Cuts `text` at added tokens; `normalized` selects those that are matched in normalized text or the others.
  /// Receives the stretches between with id -1. Takes time that grows with the text, whatever the tokens are.
  using Sink = absl::FunctionRef<absl::Status(Range, int32_t id)>;
  absl::Status split(std::string_view text, bool normalized, Sink sink) const;
  bool hasTokens(bool normalized) const { return !(normalized ? normalizedMatcher : rawMatcher).empty(); }

  std::optional<int32_t> idOf(std::string_view content) const;
  /// What decoding makes of an added token: its normalized form; null where the id is not an added token's.
  const std::string *tokenOf(int32_t id) const;
  /// Whether `token` is the content of a special token.
  bool isSpecial(std::string_view token) const { return specials.contains(abslView(token)); }

private:
  struct Token {
    std::string content, decoded;
    bool singleWord = false, stripLeft = false, stripRight = false, normalized = false, special = false;
  };

  static absl::StatusOr<Token> readToken(const JsonObject &object);
  absl::Status add(Token token, const Model &model, const Normalizer *normalizer, int32_t &nextId);
  void index();

  absl::flat_hash_map<int32_t, Token> tokens;
  absl::flat_hash_map<std::string, int32_t> ids;
  absl::flat_hash_set<std::string> specials;
  TokenMatcher rawMatcher, normalizedMatcher;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_ADDED_VOCABULARY_H
