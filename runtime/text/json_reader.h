// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Typed reading of tokenizer.json. Every failure names the place in the file, what was expected and what was found.

#ifndef HONE_RUNTIME_TEXT_JSON_READER_H
#define HONE_RUNTIME_TEXT_JSON_READER_H

#include "hone/io/status.h"
#include "io/json_document.h"

#include <cstdint>
#include <vector>

namespace hone::text {

using Json = io::ParsedJson;

/// The document in `text`; the failure says where it stops being JSON.
absl::StatusOr<io::JsonDocument> parseJson(std::string_view text);

/// "a string", "a number", …
std::string_view describeKind(const Json &value);

/// An object of the document and its path ("pre_tokenizer.pretokenizers[1]"). The document outlives it. A member that
/// is null counts as absent.
class JsonObject {
public:
  static absl::StatusOr<JsonObject> root(const Json &document);

  const std::string &path() const { return where; }
  const Json &value() const { return *json; }
  const Json *find(std::string_view key) const;
  std::string pathOf(std::string_view key) const;

  absl::StatusOr<std::string> string(std::string_view key) const;
  absl::StatusOr<std::string> stringOr(std::string_view key, std::string_view fallback) const;
  absl::StatusOr<bool> boolean(std::string_view key) const;
  absl::StatusOr<bool> booleanOr(std::string_view key, bool fallback) const;
  absl::StatusOr<int64_t> integer(std::string_view key, int64_t lowest, int64_t highest) const;
  /// A string of exactly one character.
  absl::StatusOr<char32_t> character(std::string_view key) const;
  absl::StatusOr<JsonObject> object(std::string_view key) const;
  /// Absent where there is no such member.
  absl::StatusOr<std::optional<JsonObject>> optionalObject(std::string_view key) const;
  absl::StatusOr<const Json *> array(std::string_view key) const;
  /// The elements of an array of objects.
  absl::StatusOr<std::vector<JsonObject>> objects(std::string_view key) const;

  /// "expected <path of key> to be <what>, but got <kind>".
  absl::Status mismatch(std::string_view key, std::string_view what) const;
  /// "unsupported <thing> <value>; supported: <list>".
  absl::Status unsupported(std::string_view thing, std::string_view value, std::string_view supported) const;

private:
  JsonObject(const Json &json, std::string where, int depth) : json(&json), where(std::move(where)), depth(depth) {}
  absl::StatusOr<JsonObject> child(const Json &value, std::string childPath) const;

  const Json *json;
  std::string where;
  int depth;
};

/// "expected <path> to be <what>, but got <kind of value>"; a null pointer is "nothing".
absl::Status jsonMismatch(std::string_view path, std::string_view what, const Json *value);

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_JSON_READER_H
