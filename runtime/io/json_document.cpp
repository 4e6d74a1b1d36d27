// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Building a document in place, and emptying it.

#include "json_document.h"

#include <set>

namespace hone::io {
namespace {

/// Builds the value where it is, so that what there is of it is emptied where an allocation fails.
class Builder : public nlohmann::detail::json_sax_dom_parser<ParsedJson> {
  using Base = nlohmann::detail::json_sax_dom_parser<ParsedJson>;

public:
  Builder(ParsedJson &root, JsonDocument::Fault &fault) : Base(root, /*allow_exceptions_=*/false), fault(fault) {}
  bool start_object(size_t size) { return enter() && Base::start_object(size); }
  bool start_array(size_t size) { return enter() && Base::start_array(size); }
  bool end_object() {
    --depth;
    return Base::end_object();
  }
  bool end_array() {
    --depth;
    return Base::end_array();
  }
  bool key(std::string &name) {
    if (depth == 1 && !keys.insert(name).second)
      fault.repeated = name;
    return Base::key(name);
  }

private:
  bool enter() {
    fault.isDeep = ++depth > kDeepestJson;
    return !fault.isDeep;
  }

  JsonDocument::Fault &fault;
  std::set<std::string> keys;
  int depth = 0;
};

void empty(ParsedJson &value) noexcept {
  if (value.is_array()) {
    auto &elements = value.get_ref<ParsedJson::array_t &>();
    for (ParsedJson &element : elements)
      empty(element);
    elements.clear();
  } else if (value.is_object()) {
    auto &members = value.get_ref<ParsedJson::object_t &>();
    for (auto &[name, member] : members)
      empty(member);
    members.clear();
  }
}

} // namespace

JsonDocument::~JsonDocument() { empty(value); }

bool JsonDocument::parse(std::string_view text, Fault &fault) {
  Builder builder(value, fault);
  return ParsedJson::sax_parse(text.begin(), text.end(), &builder);
}

} // namespace hone::io
