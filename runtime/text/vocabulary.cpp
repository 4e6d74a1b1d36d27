// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading and looking up vocabularies.

#include "text/vocabulary.h"

#include <cstdio>

namespace hone::text {

std::string byteToken(int byte) {
  char text[8];
  std::snprintf(text, sizeof(text), "<0x%02X>", byte);
  return text;
}

absl::StatusOr<Vocabulary> Vocabulary::read(const JsonObject &model) {
  HONE_ASSIGN_OR_RETURN(JsonObject entries, model.object("vocab"));
  const Json &json = entries.value();
  Vocabulary vocabulary;
  vocabulary.tokens.reserve(json.size());
  vocabulary.ids.reserve(json.size());
  vocabulary.byId.reserve(json.size());
  for (auto entry = json.begin(); entry != json.end(); ++entry) {
    if (!entry->is_number_unsigned() || entry->get<uint64_t>() > static_cast<uint64_t>(kLargestTokenId))
      return io::invalid("expected the id of '", entry.key(), "' in ", entries.path(),
                         " to be a whole number from 0 to ", kLargestTokenId, ", but got ", entry->dump());
    const std::string &token = vocabulary.tokens.emplace_back(entry.key());
    auto id = entry->get<int32_t>();
    vocabulary.ids.emplace(token, id);
    vocabulary.byId[id] = &token;
  }
  return vocabulary;
}

Vocabulary Vocabulary::numbered(std::vector<std::string> tokens) {
  Vocabulary vocabulary;
  vocabulary.tokens = std::move(tokens);
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string &token = vocabulary.tokens[id];
    vocabulary.ids[abslView(token)] = static_cast<int32_t>(id);
    vocabulary.byId[static_cast<int32_t>(id)] = &token;
  }
  return vocabulary;
}

std::optional<int32_t> Vocabulary::idOf(std::string_view token) const {
  auto found = ids.find(abslView(token));
  return found == ids.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

const std::string *Vocabulary::tokenOf(int32_t id) const {
  auto found = byId.find(id);
  return found == byId.end() ? nullptr : found->second;
}

} // namespace hone::text
