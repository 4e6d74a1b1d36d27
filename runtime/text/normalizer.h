// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The "normalizer" of tokenizer.json: rewrites of text before it is split.

#ifndef HONE_RUNTIME_TEXT_NORMALIZER_H
#define HONE_RUNTIME_TEXT_NORMALIZER_H

#include "text/json_reader.h"
#include "text/regex.h"

#include <memory>
#include <string>

namespace hone::text {

/// Text on its way through the normalizers.
struct NormalizedText {
  std::string text;
  /// The first character comes from the first character of the input; Metaspace asks.
  bool atStart = true;
};

/// Immutable and usable from several threads.
class Normalizer {
public:
  virtual ~Normalizer() = default;
  virtual absl::Status apply(NormalizedText &text, RegexScratch &scratch) const = 0;

  /// The normalizer that an object of tokenizer.json describes.
  static absl::StatusOr<std::unique_ptr<Normalizer>> read(const JsonObject &object);
};

/// The byte-level alphabet: each byte as one printable character (GPT-2's bytes_to_unicode).
char32_t byteLevelCharacter(unsigned char byte);
/// The byte a character of that alphabet stands for; -1 for any other character.
int byteLevelByte(char32_t character);
/// Appends `bytes` in the byte-level alphabet.
void appendByteLevel(std::string &text, std::string_view bytes);

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_NORMALIZER_H
