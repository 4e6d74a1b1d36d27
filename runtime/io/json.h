// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parsing of JSON without exceptions, and typed access that cannot throw either.

#ifndef HONE_RUNTIME_IO_JSON_H
#define HONE_RUNTIME_IO_JSON_H

#include "hone/io/status.h"
#include "json_document.h"

#include <functional>

namespace hone::io {

/// For writing: members keep their order.
using Json = nlohmann::ordered_json;

/// The document in `text`; fails for text that is no JSON, or where an object at the first level names a key twice.
absl::StatusOr<JsonDocument> parseJson(std::string_view text, const std::string &name);

/// Calls `read` with each line that is not blank and its number from 1, until it fails: for JSON Lines.
absl::Status forEachLine(std::string_view text,
                         const std::function<absl::Status(std::string_view line, int64_t number)> &read);

/// The member of an object, or null where the value is no object or has no such member.
const ParsedJson *member(const ParsedJson &object, const char *key);

std::optional<std::string> asString(const ParsedJson *value);

/// A whole number that fits; a number with a fraction or beyond int64 is nothing.
std::optional<int64_t> asInteger(const ParsedJson *value);

} // namespace hone::io

#endif // HONE_RUNTIME_IO_JSON_H
