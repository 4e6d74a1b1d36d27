// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SentencePiece's "precompiled_charsmap": a compiled table of what characters become.

#ifndef HONE_RUNTIME_TEXT_PRECOMPILED_H
#define HONE_RUNTIME_TEXT_PRECOMPILED_H

#include "text/normalizer.h"

#include <optional>
#include <vector>

namespace hone::text {

/// Replaces grapheme clusters of up to five bytes, and characters, by what the table says of their shortest beginning
/// that is in it.
class Precompiled : public Normalizer {
public:
  static absl::StatusOr<std::unique_ptr<Normalizer>> create(const JsonObject &object);
  absl::Status apply(NormalizedText &text, RegexScratch &scratch) const override;

private:
  std::optional<std::string_view> replacementOf(std::string_view text) const;
  absl::Status appendCluster(std::string_view cluster, std::string &result) const;

  std::vector<uint32_t> units; // a double array in the layout of Darts-clone
  std::string replacements;    // each ends with a NUL
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_PRECOMPILED_H
