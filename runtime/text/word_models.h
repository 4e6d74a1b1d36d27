// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The models that only look words up: WordPiece (Schuster and Nakajima 2012, as BERT uses it) and WordLevel.

#ifndef HONE_RUNTIME_TEXT_WORD_MODELS_H
#define HONE_RUNTIME_TEXT_WORD_MODELS_H

#include "text/model.h"

namespace hone::text {

/// The longest token that begins the word, then the longest that goes on, marked by a prefix, and so forth; the unknown
/// token for the whole word where that gets stuck.
class WordPieceModel : public Model {
public:
  static absl::StatusOr<std::unique_ptr<Model>> create(const JsonObject &object);
  absl::Status tokenize(std::string_view word, ModelScratch &scratch, std::vector<int32_t> &ids) const override;

private:
  using Model::Model;
  std::optional<int32_t> longestToken(std::string_view word, size_t begin, size_t &end) const;

  std::string unknownToken, continuingPrefix;
  int64_t maximalCharacters = 0;
};

/// A word is a token or unknown.
class WordLevelModel : public Model {
public:
  static absl::StatusOr<std::unique_ptr<Model>> create(const JsonObject &object);
  absl::Status tokenize(std::string_view word, ModelScratch &scratch, std::vector<int32_t> &ids) const override;

private:
  using Model::Model;
  std::string unknownToken;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_WORD_MODELS_H
