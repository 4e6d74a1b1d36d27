// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Byte-pair encoding (Sennrich et al. 2016), over the byte-level alphabet or over characters with a fallback to bytes.

#ifndef HONE_RUNTIME_TEXT_BPE_H
#define HONE_RUNTIME_TEXT_BPE_H

#include "text/bpe_merges.h"
#include "text/model.h"

#include <array>

namespace hone::text {

class BpeModel : public Model {
public:
  static absl::StatusOr<std::unique_ptr<Model>> create(const JsonObject &object);

  std::unique_ptr<ModelScratch> makeScratch() const override;
  absl::Status tokenize(std::string_view word, ModelScratch &scratch, std::vector<int32_t> &ids) const override;

private:
  struct Scratch;
  class Symbolizer;
  using Model::Model;

  absl::Status readOptions(const JsonObject &object);
  void indexCharacters();
  void indexBytes();
  absl::Status tokenizeLong(std::string_view word, Scratch &scratch, std::vector<int32_t> &ids) const;
  void tokenizeSegment(int32_t *symbols, size_t count, Scratch &scratch, std::vector<int32_t> &ids) const;
  std::optional<int32_t> idOfCharacter(std::string_view character) const;

  BpeMerges merges;
  std::optional<std::string> unknownToken;
  std::string continuingPrefix, endSuffix;
  bool fuseUnknown = false, byteFallback = false, ignoreMerges = false;

  /// Ids of the characters of the basic plane (-1: none) and of the bytes as <0xHH>.
  std::vector<int32_t> characterIds;
  std::array<int32_t, 256> byteIds;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_BPE_H
