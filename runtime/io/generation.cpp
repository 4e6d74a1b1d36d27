// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// generation_config.json.

#include "hone/io/generation.h"

#include "hone/io/file.h"
#include "json.h"

namespace hone::io {
namespace {

class ConfigReader {
public:
  ConfigReader(const ParsedJson &document, const std::string &path) : document(document), path(path) {}

  absl::StatusOr<GenerationConfig> read() {
    GenerationInfo &info = config.info;
    info.endTokens = tokens("eos_token_id");
    info.beginToken = token("bos_token_id");
    readStart();
    info.rules.never = tokens("suppress_tokens");
    for (const ParsedJson &word : list("bad_words_ids"))
      if (std::vector<int64_t> ids = tokensOf(word, "bad_words_ids"); ids.size() == 1)
        info.rules.never.push_back(ids.front());
      else
        ignore("bad_words_ids");
    info.rules.notFirst = tokens("begin_suppress_tokens");
    info.rules.last = token("forced_eos_token_id");
    for (const char *key : {"image_token_id", "image_token_index", "audio_token_id", "audio_token_index"})
      if (!config.featureToken)
        config.featureToken = token(key);
    listIgnored();
    HONE_RETURN_IF_ERROR(status);
    return std::move(config);
  }

private:
  /// The member, or null where it is absent or null.
  const ParsedJson *find(const char *key) const {
    const ParsedJson *value = member(document, key);
    return value && !value->is_null() ? value : nullptr;
  }

  const ParsedJson &list(const char *key) {
    static const ParsedJson empty = ParsedJson::array();
    const ParsedJson *value = find(key);
    if (value && !value->is_array())
      complain(key, "a list");
    return value && value->is_array() ? *value : empty;
  }

  int64_t tokenOf(const ParsedJson &value, const char *key) {
    std::optional<int64_t> id = asInteger(&value);
    if (!id || *id < 0)
      complain(key, "token ids");
    return id.value_or(0);
  }

  std::vector<int64_t> tokensOf(const ParsedJson &value, const char *key) {
    if (!value.is_array())
      return {tokenOf(value, key)};
    std::vector<int64_t> ids;
    for (const ParsedJson &each : value)
      ids.push_back(tokenOf(each, key));
    return ids;
  }

  std::vector<int64_t> tokens(const char *key) {
    const ParsedJson *value = find(key);
    return value ? tokensOf(*value, key) : std::vector<int64_t>();
  }

  std::optional<int64_t> token(const char *key) {
    const ParsedJson *value = find(key);
    // Some files have a list of one.
    if (value && value->is_array() && value->size() == 1)
      value = &value->front();
    return value ? std::optional(tokenOf(*value, key)) : std::nullopt;
  }

  /// The decoder's first tokens, in the order of Whisper's, which has all of them: start, language, task, no timestamps.
  void readStart() {
    std::optional<int64_t> first = token("decoder_start_token_id");
    if (!first)
      return;
    std::vector<std::vector<int64_t>> &start = config.info.startTokens;
    start.push_back({*first});
    if (std::optional<int64_t> forced = token("forced_bos_token_id"))
      start.push_back({*forced});
    std::vector<int64_t> languages;
    if (const ParsedJson *ids = find("lang_to_id"); ids && ids->is_object())
      for (const ParsedJson &id : *ids)
        languages.push_back(tokenOf(id, "lang_to_id"));
    for (const ParsedJson &pair : list("forced_decoder_ids")) {
      bool isNext = pair.is_array() && pair.size() == 2 && asInteger(&pair[0]) == static_cast<int64_t>(start.size());
      bool isOpen = isNext && pair[1].is_null() && !languages.empty(); // whatever language it is
      if (!isNext || (pair[1].is_null() && !isOpen))
        return complain("forced_decoder_ids", "pairs of a place, from 1 on, and a token");
      start.push_back(isOpen ? languages : std::vector{tokenOf(pair[1], "forced_decoder_ids")});
    }
    if (start.size() == 1 && !languages.empty())
      start.push_back(languages);
    std::optional<int64_t> untimed = token("no_timestamps_token_id");
    if (untimed && start.back() != std::vector{*untimed})
      start.push_back({*untimed});
  }

  void ignore(const std::string &what) { config.ignored.push_back(what); }

  void listIgnored() {
    for (const auto &[key, usual] : {std::pair("num_beams", 1), std::pair("no_repeat_ngram_size", 0),
                                     std::pair("encoder_no_repeat_ngram_size", 0), std::pair("min_length", 0)})
      if (std::optional<int64_t> value = asInteger(find(key)); value && *value > usual)
        ignore(cat(key, "=", *value));
  }

  void complain(const char *key, std::string_view expected) {
    if (status.ok())
      status = invalid(path, ": expected '", key, "' to be ", expected);
  }

  const ParsedJson &document;
  const std::string &path;
  GenerationConfig config;
  absl::Status status;
};

} // namespace

absl::StatusOr<GenerationConfig> parseGenerationConfig(std::string_view text, const std::string &name) {
  HONE_ASSIGN_OR_RETURN(JsonDocument document, parseJson(text, name));
  if (!document->is_object())
    return invalid(name, ": expected an object");
  return ConfigReader(*document, name).read();
}

absl::StatusOr<GenerationConfig> readGenerationConfig(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(std::string text, readFile(path));
  return parseGenerationConfig(text, path);
}

} // namespace hone::io
