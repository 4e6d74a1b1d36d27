// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading and looking up vocabularies.

#include "text/vocabulary.h"

namespace hone::text {

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

std::optional<int32_t> Vocabulary::idOf(std::string_view token) const {
  auto found = ids.find(abslView(token));
  return found == ids.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

const std::string *Vocabulary::tokenOf(int32_t id) const {
  auto found = byId.find(id);
  return found == byId.end() ? nullptr : found->second;
}

} // namespace hone::text
