// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tokenizers of the `tokenizer.json` format: text to token ids and back, token for token as PyPI's `tokenizers`.

#ifndef HONE_TEXT_TOKENIZER_H
#define HONE_TEXT_TOKENIZER_H

#include "hone/io/status.h"

#include "absl/types/span.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hone::text {

class DecodeStage;

/// Immutable and usable from several threads at once. "truncation" and "padding" of the file are not applied: how long a
/// sequence may be is the caller's business.
class Tokenizer {
public:
  static absl::StatusOr<Tokenizer> fromFile(const std::string &path);
  static absl::StatusOr<Tokenizer> fromJson(std::string_view json);

  Tokenizer(Tokenizer &&) noexcept;
  Tokenizer &operator=(Tokenizer &&) noexcept;
  ~Tokenizer();

  /// The ids of `text`, with the special tokens of the post-processor around them if asked for. Fails for text that is
  /// not UTF-8.
  absl::StatusOr<std::vector<int32_t>> encode(std::string_view text, bool addSpecialTokens = true) const;

  /// The text of `ids`. An id without a token adds nothing.
  absl::StatusOr<std::string> decode(absl::Span<const int32_t> ids, bool skipSpecialTokens = true) const;

  std::optional<int32_t> idOf(std::string_view token) const;
  /// As decoders see it: in the byte-level alphabet, with "▁" for a space, …
  std::optional<std::string> tokenOf(int32_t id) const;
  bool isSpecial(int32_t id) const;

private:
  friend class Detokenizer;
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts;
};

/// An id that stands for one token in a tokenizer and for another in a second one.
struct TokenDifference {
  int64_t id;
  std::string expected, got; // the tokens in quotes, or "no token"
};

/// The first of the ids below `count` whose tokens differ, or nothing.
std::optional<TokenDifference> findDifference(const Tokenizer &expected, const Tokenizer &got, int64_t count);

/// Decodes ids as they come. What push() returns, one after the other, and what finish() returns is together what
/// Tokenizer::decode returns for all ids; each is valid UTF-8. The tokenizer outlives it.
class Detokenizer {
public:
  explicit Detokenizer(const Tokenizer &tokenizer, bool skipSpecialTokens = true);
  Detokenizer(Detokenizer &&) noexcept;
  Detokenizer &operator=(Detokenizer &&) noexcept;
  ~Detokenizer();

  /// The text that is certain with this id; often that of the id, empty while a character is incomplete.
  absl::StatusOr<std::string> push(int32_t id);
  /// What was held back. No push() may follow.
  absl::StatusOr<std::string> finish();

private:
  const Tokenizer *tokenizer;
  bool skipSpecialTokens;
  std::unique_ptr<std::string> pending;
  std::unique_ptr<DecodeStage> stage;
};

} // namespace hone::text

#endif // HONE_TEXT_TOKENIZER_H
