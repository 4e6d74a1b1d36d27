// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// WordPiece and WordLevel.

#include "text/word_models.h"

#include "text/unicode.h"

namespace hone::text {

absl::StatusOr<std::unique_ptr<Model>> WordPieceModel::create(const JsonObject &object) {
  HONE_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::read(object));
  auto model = std::unique_ptr<WordPieceModel>(new WordPieceModel(std::move(vocabulary)));
  HONE_ASSIGN_OR_RETURN(model->unknownToken, object.string("unk_token"));
  HONE_ASSIGN_OR_RETURN(model->continuingPrefix, object.string("continuing_subword_prefix"));
  HONE_ASSIGN_OR_RETURN(model->maximalCharacters, object.integer("max_input_chars_per_word", 0, INT64_MAX));
  return model;
}

/// The longest token of word[begin, …); `end` is where it ends.
std::optional<int32_t> WordPieceModel::longestToken(std::string_view word, size_t begin, size_t &end) const {
  std::string candidate = begin == 0 ? std::string() : continuingPrefix;
  size_t prefixSize = candidate.size();
  candidate += word.substr(begin);
  while (candidate.size() > prefixSize) {
    if (auto id = vocabulary().idOf(candidate)) {
      end = begin + candidate.size() - prefixSize;
      return id;
    }
    do // drop the last character
      candidate.pop_back();
    while (candidate.size() > prefixSize && (word[begin + candidate.size() - prefixSize] & 0xc0) == 0x80);
  }
  return std::nullopt;
}

absl::Status WordPieceModel::tokenize(std::string_view word, ModelScratch &, std::vector<int32_t> &ids) const {
  size_t idsBefore = ids.size();
  bool isKnown = countCodePoints(word) <= static_cast<size_t>(maximalCharacters);
  for (size_t begin = 0; isKnown && begin < word.size();) {
    auto id = longestToken(word, begin, begin);
    isKnown = id.has_value();
    if (isKnown)
      ids.push_back(*id);
  }
  if (isKnown)
    return absl::OkStatus();
  ids.resize(idsBefore);
  HONE_ASSIGN_OR_RETURN(int32_t unknown, unknownId(unknownToken));
  ids.push_back(unknown);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Model>> WordLevelModel::create(const JsonObject &object) {
  HONE_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::read(object));
  auto model = std::unique_ptr<WordLevelModel>(new WordLevelModel(std::move(vocabulary)));
  HONE_ASSIGN_OR_RETURN(model->unknownToken, object.string("unk_token"));
  return model;
}

absl::Status WordLevelModel::tokenize(std::string_view word, ModelScratch &, std::vector<int32_t> &ids) const {
  std::optional<int32_t> id = vocabulary().idOf(word);
  if (!id) {
    HONE_ASSIGN_OR_RETURN(id, unknownId(unknownToken));
  }
  ids.push_back(*id);
  return absl::OkStatus();
}

} // namespace hone::text
