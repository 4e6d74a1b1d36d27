// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Typed reading of tokenizer.json without exceptions.

#include "text/json_reader.h"

#include "text/unicode.h"

namespace hone::text {

namespace {

constexpr int kMaximalDepth = 32; // of the objects that this reader enters, which recurse

/// Finds where a document stops being JSON; keeps nothing else of it.
struct FaultFinder : nlohmann::json_sax<Json> {
  size_t position = 0;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t &) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t at, const std::string &, const nlohmann::detail::exception &) override {
    position = at;
    return false;
  }
};

} // namespace

absl::StatusOr<io::JsonDocument> parseJson(std::string_view text) {
  io::JsonDocument document;
  io::JsonDocument::Fault reason;
  if (document.parse(text, reason))
    return document;
  if (reason.isDeep)
    return io::invalid("expected JSON to be nested at most ", io::kDeepestJson, " deep");
  FaultFinder fault;
  Json::sax_parse(text.begin(), text.end(), &fault);
  if (fault.position > text.size())
    return io::invalid("not valid JSON: the text ends within a value, after ", text.size(), " bytes");
  return io::invalid("not valid JSON from byte ", fault.position, " of ", text.size());
}

std::string_view describeKind(const Json &value) {
  switch (value.type()) {
  case Json::value_t::null:
    return "null";
  case Json::value_t::object:
    return "an object";
  case Json::value_t::array:
    return "an array";
  case Json::value_t::string:
    return "a string";
  case Json::value_t::boolean:
    return "a boolean";
  default:
    return "a number";
  }
}

absl::Status jsonMismatch(std::string_view path, std::string_view what, const Json *value) {
  return io::invalid("expected ", path, " to be ", what, ", but got ", value ? describeKind(*value) : "nothing");
}

absl::StatusOr<JsonObject> JsonObject::root(const Json &document) {
  if (!document.is_object())
    return jsonMismatch("the document", "an object", &document);
  return JsonObject(document, "", 0);
}

const Json *JsonObject::find(std::string_view key) const {
  auto found = json->find(std::string(key));
  return found == json->end() || found->is_null() ? nullptr : &*found;
}

std::string JsonObject::pathOf(std::string_view key) const {
  return where.empty() ? std::string(key) : io::cat(where, ".", key);
}

absl::Status JsonObject::mismatch(std::string_view key, std::string_view what) const {
  return jsonMismatch(pathOf(key), what, find(key));
}

absl::Status JsonObject::unsupported(std::string_view thing, std::string_view value, std::string_view supported) const {
  return absl::UnimplementedError(io::cat("unsupported ", thing, " ", value, "; supported: ", supported));
}

absl::StatusOr<std::string> JsonObject::string(std::string_view key) const {
  const Json *member = find(key);
  if (!member || !member->is_string())
    return mismatch(key, "a string");
  return member->get_ref<const std::string &>();
}

absl::StatusOr<std::string> JsonObject::stringOr(std::string_view key, std::string_view fallback) const {
  return find(key) ? string(key) : std::string(fallback);
}

absl::StatusOr<bool> JsonObject::boolean(std::string_view key) const {
  const Json *member = find(key);
  if (!member || !member->is_boolean())
    return mismatch(key, "a boolean");
  return member->get<bool>();
}

absl::StatusOr<bool> JsonObject::booleanOr(std::string_view key, bool fallback) const {
  return find(key) ? boolean(key) : fallback;
}

absl::StatusOr<int64_t> JsonObject::integer(std::string_view key, int64_t lowest, int64_t highest) const {
  const Json *member = find(key);
  if (!member || !member->is_number_integer())
    return mismatch(key, "a whole number");
  bool beyond = member->is_number_unsigned() && member->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  int64_t value = beyond ? INT64_MAX : member->get<int64_t>();
  if (beyond || value < lowest || value > highest)
    return io::invalid("expected ", pathOf(key), " to be from ", lowest, " to ", highest, ", but got ", member->dump());
  return value;
}

absl::StatusOr<char32_t> JsonObject::character(std::string_view key) const {
  HONE_ASSIGN_OR_RETURN(std::string text, string(key));
  if (countCodePoints(text) != 1)
    return io::invalid("expected ", pathOf(key), " to be one character, but got '", text, "'");
  size_t position = 0;
  return decodeCodePoint(text, position);
}

absl::StatusOr<JsonObject> JsonObject::child(const Json &value, std::string childPath) const {
  if (!value.is_object())
    return jsonMismatch(childPath, "an object", &value);
  if (depth == kMaximalDepth)
    return io::invalid("cannot read ", childPath, ": it is nested more than ", kMaximalDepth, " deep");
  return JsonObject(value, std::move(childPath), depth + 1);
}

absl::StatusOr<JsonObject> JsonObject::object(std::string_view key) const {
  const Json *member = find(key);
  if (!member)
    return mismatch(key, "an object");
  return child(*member, pathOf(key));
}

absl::StatusOr<std::optional<JsonObject>> JsonObject::optionalObject(std::string_view key) const {
  if (!find(key))
    return std::optional<JsonObject>();
  HONE_ASSIGN_OR_RETURN(JsonObject member, object(key));
  return std::optional<JsonObject>(std::move(member));
}

absl::StatusOr<const Json *> JsonObject::array(std::string_view key) const {
  const Json *member = find(key);
  if (!member || !member->is_array())
    return mismatch(key, "an array");
  return member;
}

absl::StatusOr<std::vector<JsonObject>> JsonObject::objects(std::string_view key) const {
  HONE_ASSIGN_OR_RETURN(const Json *elements, array(key));
  std::vector<JsonObject> result;
  for (size_t i = 0; i < elements->size(); ++i) {
    HONE_ASSIGN_OR_RETURN(JsonObject element, child((*elements)[i], io::cat(pathOf(key), "[", i, "]")));
    result.push_back(std::move(element));
  }
  return result;
}

} // namespace hone::text
