// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The "vocab" of a model: tokens by id and ids by token.

#ifndef HONE_RUNTIME_TEXT_VOCABULARY_H
#define HONE_RUNTIME_TEXT_VOCABULARY_H

#include "text/json_reader.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include <optional>

namespace hone::text {

/// Ids are from 0 to this one; a token id is an int32 wherever models see it.
inline constexpr int64_t kLargestTokenId = INT32_MAX;

inline absl::string_view abslView(std::string_view text) { return {text.data(), text.size()}; }

/// The token that stands for a byte: <0x0A>.
std::string byteToken(int byte);

class Vocabulary {
public:
  Vocabulary() = default;
  Vocabulary(Vocabulary &&) = default;
  Vocabulary &operator=(Vocabulary &&) = default;

  /// Reads the object "vocab" of a model. Ids may have gaps; where two tokens have one id, the last in order of bytes
  /// is the id's token.
  static absl::StatusOr<Vocabulary> read(const JsonObject &model);
  /// Tokens whose ids are their places; of equal tokens the last counts.
  static Vocabulary numbered(std::vector<std::string> tokens);

  std::optional<int32_t> idOf(std::string_view token) const;
  /// Null where no token has this id.
  const std::string *tokenOf(int32_t id) const;
  size_t size() const { return tokens.size(); }
  const std::vector<std::string> &all() const { return tokens; }
  bool idsAreUnique() const { return byId.size() == tokens.size(); }

private:
  std::vector<std::string> tokens; // never grows: the maps point into it
  absl::flat_hash_map<absl::string_view, int32_t> ids;
  absl::flat_hash_map<int32_t, const std::string *> byId;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_VOCABULARY_H
