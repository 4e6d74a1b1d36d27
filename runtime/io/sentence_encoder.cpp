// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// modules.json, the configuration of Pooling, and sentence_bert_config.json.

#include "hone/io/sentence_encoder.h"

#include "hone/io/file.h"
#include "json.h"

#include <filesystem>

namespace hone::io {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<JsonDocument> readJson(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(std::string text, readFile(path));
  return parseJson(text, path);
}

/// A folder's name in modules.json, which leads nowhere else.
bool isInside(const std::string &name) { return name.find("..") == name.npos && !fs::path(name).is_absolute(); }

absl::StatusOr<std::string> readPooling(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(JsonDocument config, readJson(path));
  if (std::optional<std::string> mode = asString(member(*config, "pooling_mode")))
    return *mode;
  std::string mode;
  for (const auto &[key, name] :
       {std::pair("pooling_mode_cls_token", "cls"), std::pair("pooling_mode_mean_tokens", "mean"),
        std::pair("pooling_mode_max_tokens", "max"),
        std::pair("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"),
        std::pair("pooling_mode_weightedmean_tokens", "weightedmean"),
        std::pair("pooling_mode_lasttoken", "lasttoken")}) {
    const ParsedJson *isSet = member(*config, key);
    if (!isSet || !isSet->is_boolean() || !isSet->get<bool>())
      continue;
    if (!mode.empty())
      return invalid(path, ": unsupported pooling by ", mode, " and ", name, " at once");
    mode = name;
  }
  if (mode.empty())
    return invalid(path, ": expected a kind of pooling, but none is set");
  return mode;
}

} // namespace

absl::StatusOr<std::optional<SentenceEncoder>> readSentenceEncoder(const std::string &folder) {
  std::error_code error;
  std::string path = (fs::path(folder) / "modules.json").string();
  if (!fs::is_regular_file(path, error))
    return std::nullopt;
  HONE_ASSIGN_OR_RETURN(JsonDocument modules, readJson(path));
  if (!modules->is_array())
    return invalid(path, ": expected a list of modules");
  SentenceEncoder encoder;
  for (const ParsedJson &module : *modules) {
    std::string type = asString(member(module, "type")).value_or(""),
                place = asString(member(module, "path")).value_or("");
    std::string kind = type.substr(type.rfind('.') + 1);
    if (!isInside(place))
      return invalid(path, ": expected the path of a module in the folder, but got '", place, "'");
    if (kind == "Pooling") {
      HONE_ASSIGN_OR_RETURN(encoder.pooling, readPooling((fs::path(folder) / place / "config.json").string()));
    } else if (kind == "Normalize") {
      encoder.normalizes = true;
    } else if (kind != "Transformer") {
      return invalid(path, ": unsupported module '", type, "'; supported: Transformer, Pooling, Normalize");
    }
  }
  if (encoder.pooling.empty())
    return invalid(path, ": expected a module Pooling, but there is none");
  std::string limits = (fs::path(folder) / "sentence_bert_config.json").string();
  if (!fs::is_regular_file(limits, error))
    return encoder;
  HONE_ASSIGN_OR_RETURN(JsonDocument config, readJson(limits));
  const ParsedJson *most = member(*config, "max_seq_length");
  if (most && !most->is_null()) {
    encoder.mostTokens = asInteger(most);
    if (!encoder.mostTokens || *encoder.mostTokens < 1)
      return invalid(limits, ": expected 'max_seq_length' to be a number of tokens");
  }
  return encoder;
}

} // namespace hone::io
