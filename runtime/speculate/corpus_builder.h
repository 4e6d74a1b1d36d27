// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes corpora (corpus.h).

#ifndef HONE_RUNTIME_SPECULATE_CORPUS_BUILDER_H
#define HONE_RUNTIME_SPECULATE_CORPUS_BUILDER_H

#include "hone/io/status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace hone::speculate {

/// Collects texts, and writes them with their index: about 20 bytes a token of memory. The same texts in the same order give the same bytes.
class CorpusBuilder {
public:
  /// A text; one without tokens is left out. Fails for tokens below 0 or too large for an index, and for more tokens than it counts.
  absl::Status add(std::span<const int32_t> tokens);
  /// Fails where there is something at `path` that a corpus may not replace.
  static absl::Status checkOutput(const std::string &path);
  uint64_t countTexts() const { return texts; }
  uint64_t countTokens() const { return symbols.size() - texts; }

  /// Writes `path`, which replaces nothing but a former corpus. `tokenizer` is its fingerprint. Fails where there is no text. Nothing can be
  /// added afterwards.
  absl::Status write(const std::string &path, uint64_t tokenizer) &&;

private:
  std::vector<int32_t> symbols; // a token and 1, or 0 before each text
  int32_t vocabulary = 0;       // all tokens are less
  uint64_t texts = 0;
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_CORPUS_BUILDER_H
