// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A JSON document that can be built and destroyed where there is no memory. The library's destructor of a value allocates for those in it,
// and what it throws there ends the process: here values are emptied from the innermost on, before they are destroyed.

#ifndef HONE_RUNTIME_IO_JSON_DOCUMENT_H
#define HONE_RUNTIME_IO_JSON_DOCUMENT_H

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hone::io {

/// Not ordered_json, which copies and destroys members as an object grows.
using ParsedJson = nlohmann::json;

/// Deeper than any file that we read; the values of a document are emptied by recursion.
constexpr int kDeepestJson = 512;

class JsonDocument {
public:
  JsonDocument() = default;
  JsonDocument(JsonDocument &&other) noexcept { std::swap(value, other.value); }
  JsonDocument &operator=(JsonDocument &&other) noexcept {
    std::swap(value, other.value);
    return *this;
  }
  ~JsonDocument();

  const ParsedJson &operator*() const { return value; }
  const ParsedJson *operator->() const { return &value; }

  /// What is to be said of a text.
  struct Fault {
    bool isDeep = false;                 // nested more than kDeepestJson deep; what is no document else is no JSON
    std::optional<std::string> repeated; // a key that the outermost object has twice, of which the last counts
  };

  /// Whether `text` is a document.
  bool parse(std::string_view text, Fault &fault);

private:
  ParsedJson value;
};

} // namespace hone::io

#endif // HONE_RUNTIME_IO_JSON_DOCUMENT_H
