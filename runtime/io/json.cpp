// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JSON without exceptions.

#include "json.h"

#include <limits>
#include <set>

namespace hone::io {

absl::StatusOr<Json> parseJson(std::string_view text, const std::string &name) {
  std::set<std::string> keys;
  std::optional<std::string> repeated;
  auto noteKey = [&](int depth, Json::parse_event_t event, Json &value) {
    if (event == Json::parse_event_t::key && depth == 1 && !keys.insert(value.get_ref<std::string &>()).second)
      repeated = value.get_ref<std::string &>();
    return true;
  };
  Json document = Json::parse(text.begin(), text.end(), noteKey, /*allow_exceptions=*/false);
  if (document.is_discarded())
    return invalid(name, ": not valid JSON");
  if (repeated)
    return invalid(name, ": the key '", *repeated, "' occurs twice");
  return document;
}

const Json *member(const Json &object, const char *key) {
  if (!object.is_object())
    return nullptr;
  auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::optional<std::string> asString(const Json *value) {
  if (!value || !value->is_string())
    return std::nullopt;
  return value->get_ref<const std::string &>();
}

std::optional<int64_t> asInteger(const Json *value) {
  if (!value || !value->is_number_integer())
    return std::nullopt;
  if (value->is_number_unsigned() &&
      value->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  return value->get<int64_t>();
}

} // namespace hone::io
