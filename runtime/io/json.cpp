// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JSON without exceptions.

#include "json.h"

#include <algorithm>

#include <limits>

namespace hone::io {

absl::StatusOr<JsonDocument> parseJson(std::string_view text, const std::string &name) {
  JsonDocument document;
  JsonDocument::Fault fault;
  bool isParsed = document.parse(text, fault);
  if (fault.isDeep)
    return invalid(name, ": expected JSON to be nested at most ", kDeepestJson, " deep");
  if (!isParsed)
    return invalid(name, ": not valid JSON");
  if (fault.repeated)
    return invalid(name, ": the key '", *fault.repeated, "' occurs twice");
  return document;
}

const ParsedJson *member(const ParsedJson &object, const char *key) {
  if (!object.is_object())
    return nullptr;
  auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::optional<std::string> asString(const ParsedJson *value) {
  if (!value || !value->is_string())
    return std::nullopt;
  return value->get_ref<const std::string &>();
}

std::optional<int64_t> asInteger(const ParsedJson *value) {
  if (!value || !value->is_number_integer())
    return std::nullopt;
  if (value->is_number_unsigned() &&
      value->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  return value->get<int64_t>();
}

absl::Status forEachLine(std::string_view text,
                         const std::function<absl::Status(std::string_view line, int64_t number)> &read) {
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    ++number;
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos)
      HONE_RETURN_IF_ERROR(read(line, number));
  }
  return absl::OkStatus();
}

} // namespace hone::io
