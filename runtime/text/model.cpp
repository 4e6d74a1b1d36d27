// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which model a tokenizer.json has.

#include "text/model.h"

#include "text/bpe.h"
#include "text/unigram.h"
#include "text/word_models.h"

namespace hone::text {

namespace {

/// Files written before the field existed have no "type"; their fields tell.
std::string typeOf(const JsonObject &object) {
  if (object.find("merges"))
    return "BPE";
  if (object.find("vocab") && object.find("vocab")->is_array())
    return "Unigram";
  return object.find("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

} // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::read(const JsonObject &object) {
  HONE_ASSIGN_OR_RETURN(std::string type, object.stringOr("type", typeOf(object)));
  if (type == "BPE")
    return BpeModel::create(object);
  if (type == "Unigram")
    return UnigramModel::create(object);
  if (type == "WordPiece")
    return WordPieceModel::create(object);
  if (type == "WordLevel")
    return WordLevelModel::create(object);
  return object.unsupported("tokenizer model", type, "BPE, Unigram, WordLevel, WordPiece");
}

absl::StatusOr<int32_t> Model::unknownId(const std::string &unknownToken) const {
  if (auto id = vocabulary().idOf(unknownToken))
    return *id;
  return io::invalid("cannot tokenize a word that needs the unknown token: '", unknownToken,
                     "' is not in the vocabulary");
}

} // namespace hone::text
