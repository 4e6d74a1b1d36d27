// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The unigram language model (Kudo 2018): of all ways to cut a word into tokens, the most probable.

#ifndef HONE_RUNTIME_TEXT_UNIGRAM_H
#define HONE_RUNTIME_TEXT_UNIGRAM_H

#include "text/model.h"
#include "text/string_trie.h"

#include <array>

namespace hone::text {

/// A character that no token covers is an unknown token of its own, ten below the least probable token; neighbours that
/// are unknown become one.
class UnigramModel : public Model {
public:
  static absl::StatusOr<std::unique_ptr<Model>> create(const JsonObject &object);

  std::unique_ptr<ModelScratch> makeScratch() const override;
  absl::Status tokenize(std::string_view word, ModelScratch &scratch, std::vector<int32_t> &ids) const override;

private:
  struct Scratch;
  /// The best way to the end of a token: its id, where the token begins, and the logarithm of its probability.
  struct Node {
    int32_t id;
    size_t begin;
    double score;
  };
  using Model::Model;

  absl::Status findBestPath(std::string_view word, std::vector<Node> &nodes) const;
  absl::Status appendToken(std::string_view token, std::vector<int32_t> &ids) const;

  std::vector<double> scores; // by id
  StringTrie tokens;
  std::optional<int32_t> unknownId;
  double unknownScore = 0;
  /// Ids of <0xHH>; empty unless the model falls back to bytes (-1: no token for this byte).
  std::vector<int32_t> byteIds;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_UNIGRAM_H
